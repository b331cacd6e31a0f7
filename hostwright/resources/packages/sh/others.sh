# others TREE [LIBRARY...]: what lies below the directory TREE of packages, a line each, with tabs. What people have there:
# `added PATH` for what no package and no archive of ours put there (of a directory in which nothing is theirs, the
# directory), `changed PACKAGE PATH` for a file of a package that was written after the package was unpacked; `by hand` where
# nothing there is a package's or ours, dpkg unpacks nothing there, and programs are in its bin; `back` where it is not
# there, and what somebody had there was moved aside. What packages have there: `gone PACKAGE PATH` for a file that is not
# there, and of each directory LIBRARY of shared objects `packaged PACKAGE PATH` and `found KIND SIZE PATH TARGET`.
# A file whose time is old, but which came there later (a copy with its times), is changed if its bytes are not the
# package's; $look_bytes of such files are read at most: of a disk that was copied, all files came later.
# keep_changed TREE PACKAGE...: keeps the files of these packages that were changed. Needs keep_aside.
# Names with a line break or a tab are passed over: they stay where they are.
# shellcheck disable=SC2016  # the program is awk's
: "${info:?}"
: "${records:?}"
: "${files:?}"
: "${look_bytes:?}"
newline='
' tab='	'
# What lies there: find's lines, each of `there`, times, size, kind, path and target. Records of archives are read first, as
# files of their own, and then those of dpkg's lists that name anything there.
# Rows `look` (its bytes are to be compared) and `gone` (find has not come by it, as it may lie on another disk) are judged
# afterwards.
whose='
  function parent(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
  function own(path, by) { owner[path] = by; while ((path = parent(path)) != "" && !(path in folder)) folder[path] }
  function package(list) { sub(/.*\//, "", list); sub(/(:[^:]*)?[.]list$/, "", list); return list }
  BEGIN { folder[tree]; count = split(libraries, names, FS); for (i = 1; i <= count; i++) library[names[i]] }
  index(FILENAME, info "/") == 1 {
    if (!index($0, tree "/")) next
    known++; own($0, FILENAME)
    if ($0 ~ /[.]so[^\/]*$/ && parent($0) in library) print "packaged" FS package(FILENAME) FS $0
    next
  }
  FILENAME != "-" { if (FNR > 1) { if (index($4, tree "/") == 1) known++; own($4, "") } next }
  NF != 7 { next }
  { path = $6 }
  index(path, info "/") == 1 { unpacked[path] = $2; next }
  index(path, files "/") == 1 { if (sub(/[.]written$/, "", path)) { known++; own(substr(path, length(files) + 1), "") } next }
  { seen[path] }
  path ~ /[.]so[^\/]*$/ && parent(path) in library { print "found" FS $5 FS $4 FS path FS $7 }
  !whole { next }
  path in owner {
    list = owner[path]; since = unpacked[list]
    if (list == "" || $5 != "f" || $4 == 0 || $3 <= since) next
    if ($2 > since) print "changed" FS package(list) FS path
    else print "look" FS package(list) FS path FS $4 FS list
    next
  }
  path ~ /[.]dpkg-new$/ { unpacking++; next }
  path ~ /[.]hostwright-|[.]before-hostwright[.]/ { next }
  { while (!(parent(path) in folder)) path = parent(path) }
  index($6, tree "/bin/") == 1 { programs++ }
  !told[path]++ { print "added" FS path }
  END {
    if (programs && !known && !unpacking) print "by hand"
    for (path in owner)
      if (owner[path] != "" && !(path in seen) && !(path in folder) && index(path, tree "/") == 1)
        print "gone" FS package(owner[path]) FS path
  }
'
# Of the rows `look`, whose bytes are to be compared, those that come to $look_bytes, with their sums; the others as they are.
summed='
  index($0, info "/") == 1 {
    at = index($0, ".md5sums:")
    sum[substr($0, 1, at) "list" FS "/" substr($0, at + 43)] = substr($0, at + 9, 32)
    next
  }
  $1 != "look" { print; next }
  (packaged = sum[$5 FS $3]) == "" || looked + $4 > look_bytes { next }
  { looked += $4; print $1 FS $2 FS $3 FS packaged }
'
others() {
  tree=$1 whole=1
  shift
  if [ ! -d "$tree" ] || [ -L "$tree" ] || mountpoint -q -- "$tree"; then
    whole=
    for old in "$tree".before-hostwright.*; do
      if [ -d "$old" ] && [ ! -e "$tree" ] && [ ! -L "$tree" ]; then echo back; break; fi
    done
  fi
  rows=$(there "$@")
  case $newline$rows in
    *"${newline}look$tab"* | *"${newline}gone$tab"*) judged ;;
    *) [ -z "$rows" ] || printf '%s\n' "$rows" ;;
  esac
}
there() {
  lists=$(grep -lrsF --include='*.list' -e "$tree/" "$info") || :
  IFS=$tab
  libraries=$*
  set --
  for record in "$records"/*; do [ ! -f "$record" ] || set -- "$@" "$record"; done
  IFS=$newline
  set -f
  # shellcheck disable=SC2086  # a path a word
  find -H $lists "$files$tree" "$tree" -xdev \( -name "*$newline*" -o -lname "*$newline*" -o -name __pycache__ \) -prune -o \
    ! -type d -printf 'there\t%T@\t%C@\t%s\t%y\t%p\t%l\n' |
    LC_ALL=C awk -F '\t' -v tree="$tree" -v libraries="$libraries" -v info="$info" -v files="$files" -v whole="$whole" \
      "$whose" "$@" $lists -
}
# The shell splits the rows in memory: `read` in a loop would cost a system call for each byte of them.
judged() (
  case $newline$rows in
    *"${newline}look$tab"*)
      rows=$({
        find "$info" -name '*.md5sums' -exec grep -HsF -e " ${tree#/}/" {} +
        printf '%s\n' "$rows"
      } | LC_ALL=C awk -F '\t' -v info="$info" -v look_bytes="$look_bytes" "$summed")
      ;;
  esac
  set -f
  IFS=$newline
  for row in $rows; do
    IFS=$tab
    # shellcheck disable=SC2086  # a field a word
    set -- $row
    case $1 in
      look)
        case $(md5sum <"$3") in "$4 "*) continue ;; esac
        row=changed$tab$2$tab$3
        ;;
      gone) if [ -e "$3" ] || [ -L "$3" ]; then continue; fi ;;
    esac
    printf '%s\n' "$row"
  done
)
keep_changed() {
  tree=$1; shift
  others "$tree" | while IFS=$tab read -r kind package path; do
    case "$kind/ $* " in changed/*" $package "*) keep_aside "$path" ;; esac
  done
}
