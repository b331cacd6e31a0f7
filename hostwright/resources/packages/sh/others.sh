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
newline='
'
# What lies there, told apart by how its line begins: the path of one of dpkg's lists and what it names (grep), or `there`
# with times, size, kind and path (find). Records of archives are read first, as files of their own.
whose='
  function parent(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
  function own(path, by) { owner[path] = by; while ((path = parent(path)) != "") folder[path] }
  BEGIN { folder[tree] }
  FILENAME != "-" { if (FNR > 1) { if (index($4, tree "/") == 1) known++; own($4, "") } next }
  index($0, info "/") == 1 { known++; at = index($0, ".list:"); own(substr($0, at + 6), substr($0, 1, at + 4)); next }
  NF != 6 { next }
  { path = $6 }
  index(path, info "/") == 1 { unpacked[path] = $2; next }
  index(path, files "/") == 1 { if (sub(/[.]written$/, "", path)) { known++; own(substr(path, length(files) + 1), "") } next }
  path in owner {
    by = list = owner[path]; since = unpacked[by]
    sub(/.*\//, "", by); sub(/(:[^:]*)?[.]list$/, "", by)
    if (by == "" || $5 != "f" || $4 == 0 || $3 <= since) next
    print ($2 > since ? "changed" : "look") FS by FS path FS $4 FS list
    next
  }
  path ~ /[.]dpkg-new$/ { unpacking++; next }
  path ~ /[.]hostwright-|[.]before-hostwright[.]/ { next }
  { while (!(parent(path) in folder)) path = parent(path) }
  index($6, tree "/bin/") == 1 { programs++ }
  !seen[path]++ { print "added" FS path }
  END { if (programs && !known && !unpacking) print "by hand" }
'
# The rows of what lies there: of `look`, whose bytes are to be compared, those that come to $look_bytes, with their sums.
summed='
  index($0, info "/") == 1 {
    at = index($0, ".md5sums:")
    sum[substr($0, 1, at) "list" FS "/" substr($0, at + 43)] = substr($0, at + 9, 32)
    next
  }
  $1 == "look" && ((packaged = sum[$5 FS $3]) == "" || looked + $4 > look_bytes) { next }
  $1 == "look" { looked += $4; print $1 FS $2 FS $3 FS packaged; next }
  { print $1 (NF > 1 ? FS $2 : "") ($1 == "changed" ? FS $3 : "") }
'
others() {
  if [ ! -d "$1" ] || [ -L "$1" ] || mountpoint -q -- "$1"; then
    for old in "$1".before-hostwright.*; do
      if [ -d "$old" ] && [ ! -e "$1" ] && [ ! -L "$1" ]; then echo back; break; fi
    done
    return 0
  fi
  rows=$(there "$1")
  [ -z "$rows" ] || other_bytes "$1"
}
there() {
  tree=$1 lists=$(grep -lrsF --include='*.list' -e "$1/" "$info") || :
  set --
  for record in "$records"/*; do [ ! -f "$record" ] || set -- "$@" "$record"; done
  IFS=$newline
  set -f
  # shellcheck disable=SC2086  # a path a word
  {
    [ -z "$lists" ] || grep -HsF -e "$tree/" -- $lists
    find $lists "$files$tree" "$tree" -xdev -name "*$newline*" -prune -o -name __pycache__ -prune -o \
      ! -type d -printf 'there\t%T@\t%C@\t%s\t%y\t%p\n'
  } | LC_ALL=C awk -F '\t' -v tree="$tree" -v info="$info" -v files="$files" "$whose" "$@" -
}
other_bytes() {
  {
    case $newline$rows in
      *"${newline}look$tab"*) find "$info" -name '*.md5sums' -exec grep -HsF -e " ${1#/}/" {} + ;;
    esac
    printf '%s\n' "$rows"
  } | LC_ALL=C awk -F '\t' -v info="$info" -v look_bytes="$look_bytes" "$summed" |
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
