# others TREE: what people have below the directory TREE of packages, a line each, with tabs: `added PATH` for what no package
# and no archive of ours put there (of a directory in which nothing is theirs, the directory), `changed PACKAGE PATH` for a
# file of a package that was written after the package was unpacked; `by hand` where nothing there is a package's or ours,
# dpkg unpacks nothing there, and programs are in its bin; `back` where it is not there, and what somebody had there was
# moved aside.
# A file whose time is old, but which came there later (a copy with its times), is changed if its bytes are not the
# package's; $look_bytes of such files are read at most: of a disk that was copied, all files came later.
# keep_changed TREE PACKAGE...: keeps the files of these packages that were changed. Needs keep_aside.
# Names with a line break or a tab are passed over: they stay where they are.
# shellcheck disable=SC2016  # the program is awk's
: "${info:?}"
: "${records:?}"
: "${files:?}"
: "${look_bytes:?}"
tab=$(printf '\t')
whose='
  function parent(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
  function own(path, by) { owner[path] = by; while ((path = parent(path)) != "") folder[path] }
  BEGIN { folder[tree] }
  $1 == "list" { unpacked[$3] = $2; next }
  $1 == "packaged" { known++; at = index($2, ".list:"); own(substr($2, at + 6), substr($2, 1, at + 4)); next }
  $1 == "ours" && index($2, tree "/") == 1 { known++ }
  $1 == "ours" { own($2, ""); next }
  $1 == "sum" {
    at = index($2, ".md5sums:")
    sum[substr($2, 1, at) "list" FS "/" substr($2, at + 43)] = substr($2, at + 9, 32)
    next
  }
  NF > 6 { next }
  { path = $6 }
  path in owner {
    by = owner[path]; since = unpacked[by]; packaged = sum[by FS path]
    sub(/.*\//, "", by); sub(/(:[^:]*)?[.]list$/, "", by)
    if (by == "" || $5 != "f" || $4 == 0 || $3 <= since) next
    if ($2 > since) print "changed" FS by FS path
    else if (packaged != "" && looked + $4 <= look_bytes) { looked += $4; print "look" FS by FS path FS packaged }
    next
  }
  path ~ /[.]dpkg-new$/ { unpacking++; next }
  path ~ /[.]hostwright-|[.]before-hostwright[.]/ { next }
  { while (!(parent(path) in folder)) path = parent(path) }
  index($6, tree "/bin/") == 1 { programs++ }
  !seen[path]++ { print "added" FS path }
  END { if (programs && !known && !unpacking) print "by hand" }
'
unpacked_there() (
  tree=$1
  IFS='
'
  set -f
  # shellcheck disable=SC2046  # a name a word
  set -- $(grep -lrsF --include='*.list' -e "$tree/" "$info")
  [ $# -gt 0 ] || exit 0
  find "$@" -maxdepth 0 -printf 'list\t%T@\t%p\n'
  grep -HsF -e "$tree/" -- "$@" | sed 's/^/packaged\t/'
  for list; do set -- "$@" "${list%.list}.md5sums"; shift; done
  grep -HsF -e " ${tree#/}/" -- "$@" | sed 's/^/sum\t/'
)
others() {
  if [ ! -d "$1" ] || [ -L "$1" ] || mountpoint -q -- "$1"; then
    for old in "$1".before-hostwright.*; do
      if [ -d "$old" ] && [ ! -e "$1" ] && [ ! -L "$1" ]; then echo back; break; fi
    done
    return 0
  fi
  {
    unpacked_there "$1"
    {
      find "$records" -type f -exec sed -s 1d {} + 2>/dev/null | cut -f4
      find "$files$1" -name '*.written' -printf '%p\n' 2>/dev/null | sed "s|^$files||; s|[.]written\$||"
    } | sed 's/^/ours\t/'
    find "$1" -xdev -name '*
*' -prune -o -name __pycache__ -prune -o ! -type d -printf 'there\t%T@\t%C@\t%s\t%y\t%p\n'
  } | LC_ALL=C awk -F '\t' -v tree="$1" -v look_bytes="$look_bytes" "$whose" | other_bytes
}
other_bytes() {
  while IFS=$tab read -r kind package path sum; do
    if [ "$kind" = look ]; then
      case $(md5sum <"$path") in "$sum "*) continue ;; esac
      kind=changed
    fi
    printf '%s\n' "$kind${package:+$tab$package}${path:+$tab$path}"
  done
}
keep_changed() {
  tree=$1; shift
  others "$tree" | while IFS=$tab read -r kind package path; do
    case "$kind/ $* " in changed/*" $package "*) keep_aside "$path" ;; esac
  done
}
