# fetch_lists [OPTION...]: fetches apt's lists. It does not fail: a repository that nobody needs may be broken. $failed
# then has a line `REPOSITORY SUITE (FILE:LINE): MESSAGE` for each source that could not be fetched, and $printed all
# that apt printed.
# not_fetched PACKAGES: prints an error for each cause for which sources could not be fetched, for who needed PACKAGES of
# them.
# notes: prints a note for each source that could not be fetched, for who needed none of them.
# $patiently: a program for `sh -c` that runs its arguments, and again while another process has the lock.
# shellcheck disable=SC2016,SC2034,SC2086  # awk's and apt's own expressions; $printed is for others; $apt_options are words
: "${apt_options:?}"
: "${patiently:?}"
failed=''
fetch_lists() {
  status=0
  printed=$(sh -c "$patiently" patiently env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get $apt_options "$@" update) ||
    status=$?
  proxies=$({ apt-config dump --format '%f=%v%n' Acquire; env; } 2>/dev/null | grep -i 'proxy.*=' || true)
  case $proxies in *[Aa]uto-[Dd]etect=/* | *AutoDetect=/*)  # a program names it, which apt runs for each address
    proxies="$proxies $(timeout -k 1 10 /usr/lib/apt/apt-helper auto-detect-proxy http://localhost/ 2>/dev/null || true)" ;;
  esac
  failed=$({
    apt-get "$@" indextargets --no-release-info --format '$(REPO_URI) $(SOURCESENTRY) $(RELEASE)' 'Created-By: Packages' ||
      true
    echo
    printf '%s\n' "$printed"
  } 2>/dev/null | proxies=$proxies status=$status awk '
    function about(line,  n, best) {
      best = 0
      for (n = 1; n <= count; n++)
        if (length(spaced[n]) > length(spaced[best]) && (has(line, spaced[n]) || has(line, path[n]))) best = n
      return best
    }
    function has(line, text,  at) {
      at = index(line, text)
      return at && (text ~ /\/$/ || substr(line, at + length(text), 1) ~ /[ \/\047]/)
    }
    # Of what apt says of one source, the message of the highest rank counts.
    function said(n, rank, text) {
      sub(/^[ \t]+/, "", text); sub(/[ \t]+$/, "", text)
      if (n && text != "" && rank > ranks[n]) { message[n] = text; ranks[n] = rank }
    }
    # A host that does not answer and is not that of the repository is the proxy, if it is one of those configured.
    function through(n, text,  host) {
      if (!match(text, /(onnect(ion)? to|resolving|resolve) \047?[^ \047]+/)) return text
      host = substr(text, RSTART, RLENGTH)
      sub(/^.* \047?/, "", host); sub(/:+$/, "", host); sub(/:[0-9]+$/, "", host)
      if (index(name[n], "//" host "/") || !(index(proxies, "//" host) || index(proxies, "@" host))) return text
      return "the proxy " host " does not answer: " text
    }
    BEGIN { proxies = ENVIRON["proxies"] }
    !lists && NF == 0 { lists = 1; next }
    !lists {
      sub(/\/$/, "", $1)
      suite = $3 == "" ? "/" : $3  # of a suite that is `/` apt says nothing
      if (($1, suite) in seen) next
      seen[$1, suite] = 1; count++
      name[count] = $1 " " suite
      entry[count] = $2
      sub(/\.sources:/, ".sources, entry ", entry[count])  # apt counts the entries of such a file, not its lines
      spaced[count] = $1 " " (suite == "/" ? "" : suite)
      path[count] = $1 (suite == "/" ? "/" : suite ~ /\/$/ ? "/" suite : "/dists/" suite)
      next
    }
    /^Err(:[0-9]+)? / { current = about($0 " "); rank = 4; next }
    /^(E|Error|W|Warning): Failed to fetch/ {
      current = about($0 " "); rank = 3
      if (match($0, /  [^ ].*$/)) { said(current, rank, substr($0, RSTART)); current = 0 }
      next
    }
    /^[ \t]+[^ \t]/ && current {
      if (rank > ranks[current]) said(current, rank, $0)
      else if (/^[ \t]+- connect/ && message[current] !~ /- connect/) { sub(/^[ \t]+/, " "); message[current] = message[current] $0 }
      next
    }
    /^(E|Error|W|Warning): / {
      current = 0; n = about($0 " ")
      text = $0; sub(/^[A-Za-z]+: /, "", text)
      if (text ~ /GPG error: |OpenPGP signature verification failed: /) { sub(/^.*Release(\.gpg)?: /, "", text); said(n, 4, text) }
      else if (n && message[n] ~ /^(40[34]  |File not found)/ && text ~ /a Release file/) said(n, 5, message[n] "; " text)
      else if (n && text ~ /a Release file|longer signed|not signed|No system certificates/) said(n, 1, text)
      else if (n && text ~ /^(Release file for|Repository )/) said(n, 2, text)
      else if (!n && /^E/ && text !~ /Some index files failed/) general = general text "; "
      next
    }
    NF { current = 0 }
    END {
      for (n = 1; n <= count; n++)
        if (n in message) { any = 1; printf "%s (%s): %.400s\n", name[n], entry[n], through(n, message[n]) }
      if (!any && ENVIRON["status"] != 0) printf "its lists: %.400s\n", general == "" ? "apt-get update failed" : general
    }' | sed 's|://[^/@ ]*@|://|g')
}
not_fetched() {
  [ -z "$failed" ] || printf '%s\n' "$failed" | needed=$1 awk '
    {
      at = index($0, "): ")
      name = substr($0, 1, at); message = substr($0, at + 3)
      cause = message; sub(/ does not answer: .*/, "", cause)  # a proxy that is gone is so for all of them
      if (cause in names) { names[cause] = names[cause] ", " name; next }
      causes[++count] = cause; names[cause] = name; messages[cause] = message
    }
    END {
      for (n = 1; n <= count; n++) {
        cause = causes[n]
        printf "hostwright: error: apt has no list with %s, and could not fetch %s: %s\n",
          ENVIRON["needed"], names[cause], messages[cause]
      }
    }'
}
notes() {
  [ -z "$failed" ] || printf '%s\n' "$failed" | sed 's/^/hostwright: note: nothing here needs what apt could not fetch: /'
}
