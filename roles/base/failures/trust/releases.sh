# apt's messages when it reads its sources alone; if a repository is configured with two keys, then also every entry. Then
# `missing FILE:LINE<tab>REPOSITORY SUITE<tab>MESSAGE` for each source of which apt has no lists, and at whose address
# there is neither an InRelease nor a Release file. It is apt that asks, as its next update would, all sources at once.
# Of a source that apt has lists of nothing is asked, but whether a directory of this host still holds it. Passed over
# are sources that apt takes without a Release file (trusted=yes), those with a login in their address, which would be
# seen in the list of processes, and discs, whose lists come from apt-cdrom.
# shellcheck disable=SC2016  # apt's own expressions
export LC_ALL=C
field=$(printf '\037')
newline='
'
lists=/var/lib/apt/lists/ insecure=
if [ -n "${APT_CONFIG-}" ] || grep -qisE 'AllowInsecureRepositories|#include|Dir::State|^[[:space:]]*Dir([[:space:]]|$)' \
  /etc/apt/apt.conf /etc/apt/apt.conf.d/*; then
  eval "$(apt-config shell lists Dir::State::Lists/d)"
  case $(apt-config dump --format '%f=%v%n' 2>/dev/null | tr '[:upper:]' '[:lower:]') in
    *acquire::allowinsecurerepositories=true* | *acquire::allowinsecurerepositories=1*) insecure=yes ;;
  esac
fi
# Of each list in apt's directory the last words are those of its name in the repository: in both apt writes an
# underscore as %5f, and a slash as an underscore.
unlisted='
  function there(file,  line, status) { status = (getline line < file); close(file); return status >= 0 }
  function listed(key, list,  words, folder, n) {
    folder = list
    for (words = gsub(/\//, "/", key); words >= 0; words--) sub(/_[^_]*$/, "", folder)
    if (there(folder "_InRelease") || there(folder "_Release") || there(list)) return 1
    for (n = 1; n <= kinds; n++) if (there(list "." kind[n])) return 1
    return 0
  }
  # A directory that was a repository when apt read it may be gone since.
  function gone(uri, suite) {
    if (!sub(/^(file|copy):(\/\/)?/, "", uri)) return 0
    uri = uri (suite == "" || suite ~ /\/$/ ? suite : "dists/" suite "/")
    return !there(uri "InRelease") && !there(uri "Release")
  }
  BEGIN { kinds = split("lz4 xz gz zst bz2 lzma", kind, " ") }
  !/^(https?|file|copy|tor|tor[+]https?):/ { next }
  { source = $1 FS $2 }
  { sub(/^\/var\/empty\//, lists, $5) }
  { match($3, /:[0-9]+$/); file = substr($3, 1, RSTART - 1); line = substr($3, RSTART + 1) + 0 }
  !(source in of) { of[source] = file; at[source] = line; order[++count] = source }
  of[source] == file && line < at[source] { at[source] = line }  # deb-src comes first
  !(source in known) && listed($4, $5) && !gone($1, $2) { known[source] }
  END {
    for (n = 1; n <= count && asked < 16; n++) {
      source = order[n]
      if (!(source in known)) { asked++; print source FS of[source] ":" at[source] }
    }
  }
'
# The line of an entry, and what it says. Of a .sources file apt counts the entries.
entry() {
  number=${1##*:}
  case ${1%:*} in
    *.sources) awk -v number="$number" '
      /^#/ { next }
      /^[ \t]*$/ { inside = 0; next }
      !inside { inside = 1; entry++ }
      entry == number { text = text " " $0; if (tolower($0) ~ /^uris[ \t]*:/) line = FNR }
      END { print line " " text }' "${1%:*}" ;;
    *) printf '%s %s\n' "$number" "$(sed -n "${number}p" "${1%:*}")" ;;
  esac
}
ask() {
  case $2 in */) address=$1$2 ;; '') address=$1 ;; *) address=${1}dists/$2/ ;; esac
  text=$(entry "$3" 2>/dev/null)
  case $(printf '%s' "$text" | tr '[:upper:]' '[:lower:]' | tr -d ' \t') in
    *trusted[=:]yes* | *allow-insecure[=:]yes* | *://*@*) return ;;
  esac
  answer=$(timeout -k 1 8 /usr/lib/apt/apt-helper -o Acquire::Retries=0 -o Acquire::http::Timeout=4 \
    -o Acquire::https::Timeout=4 download-file "${address}InRelease" /dev/null "${address}Release" /dev/null 2>&1 |
    awk '/^Err:/ { failed = 1; next } failed { failed = 0; sub(/ *\[IP: .*/, ""); $1 = $1; print }' |
    grep -E '^(40[34]|410) |^File not found')
  case $answer in
    *"
"*) printf 'missing\t%s:%s\t%s %s\t%s\n' "${3%:*}" "${text%% *}" "$1" "${2:-/}" "${answer##*
}" ;;
  esac
}
# With an empty directory of lists apt does not read its lists, nor its cache of them.
said=$(
  timeout -k 1 5 apt-get -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Dir::State::Lists=/var/empty/ \
    -o Dir::State::status=/dev/null indextargets --no-release-info \
    --format "\$(REPO_URI)$field\$(RELEASE)$field\$(SOURCESENTRY)$field\$(METAKEY)$field\$(FILENAME)" 2>&1
)
status=$?
[ "$status" -lt 124 ] || exit "$status"
case $newline$said in
  *"$newline"[A-Z]": "*) printf '%s\n' "$said" | sed "/$field/d" ;;
esac
case $said in
  *"option Signed-By"*)
    grep -anHsE -m 20 '^[[:space:]]*(deb|URIs:)' /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
      /etc/apt/sources.list.d/*.sources
    ;;
esac
[ -z "$insecure" ] || exit 0
printf '%s\n' "$said" |
  awk -v FS="$field" -v lists="$lists" "$unlisted" | {
  while IFS=$field read -r uri suite file; do ask "$uri" "$suite" "$file" & done
  wait
}
exit 0
