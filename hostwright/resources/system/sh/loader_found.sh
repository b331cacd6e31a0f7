# found PATTERN: name and path, links in its directory's name followed, of what the loader opens for each matching name
# of its cache: the first entry of this architecture. Whether the file is there is the concern of who brought it.
found() {
  last=
  /sbin/ldconfig -p | sed -n 's/^[[:space:]]*\([^ ]*\) (libc6,x86-64[^)]*) => /\1 /p' |
    grep -E "^($1) " | while read -r name path; do
      [ "$name" != "$last" ] || continue
      echo "$name $(cd -P -- "${path%/*}" && pwd || echo "${path%/*}")/${path##*/}"
      last=$name
    done
}
