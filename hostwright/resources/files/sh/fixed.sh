# fixed PATH...: for each path whose file cannot be replaced, not even by root, a line `KIND<tab>WHERE<tab>PATH`: WHERE, the file
# or the directory that it lies in, is `immutable`, may only be appended to (`append`), lies on a file system that is mounted
# `read-only`, or is a mount point (`mounted`). A link is replaced, whatever it leads to. One run of lsattr for all.
fixed() {
  newline='
'
  mounts=$newline$(cut -d ' ' -f 5 /proc/self/mountinfo)$newline  # a shell reads it byte by byte, and it may be long
  immutable=$newline append=$newline
  while read -r flags at; do
    case $flags in *i*) immutable=$immutable$at$newline ;; *a*) append=$append$at$newline ;; esac
  done <<END
$(for path; do folder "$path"; set -- "$@" "$folder"; done; lsattr -d -- "$@" 2>/dev/null)
END
  for path; do
    folder "$path"
    if [ -e "$path" ] && [ ! -L "$path" ]; then
      is_fixed "$path" && continue
      case $mounts in *"$newline$path$newline"*) printf '%s\t%s\t%s\n' mounted "$path" "$path"; continue ;; esac
    fi
    is_fixed "$folder" || :
  done
}
folder() {
  folder=$1
  until folder=${folder%/*}; [ -d "$folder/" ]; do :; done
  folder=${folder:-/}
}
is_fixed() {
  case $immutable in *"$newline$1$newline"*) kind=immutable ;; *) case $append in
    *"$newline$1$newline"*) kind=append ;;
    *) [ ! -w "$1" ] || return 1; kind=read-only ;;
  esac ;; esac
  printf '%s\t%s\t%s\n' "$kind" "$1" "$path"
}
