# found PATTERN HOME: name and path, links in its directory's name followed, of what the loader opens for each matching
# name of its cache: the first entry of this architecture. What really lies below HOME is named by that, since HOME may
# itself be reached through a link. Whether the file is there is the concern of who brought it.
found() {
  /sbin/ldconfig -p | sed -nE "s/^[[:space:]]*($1) \\(libc6,x86-64[^)]*\\) => /\\1 /p" | {
      if cd -P -- "$2"; then home=$PWD; else home=$2; fi
      last=
      while read -r name path; do
        [ "$name" != "$last" ] || continue
        if cd -P -- "${path%/*}"; then place=$PWD; else place=${path%/*}; fi
        case $place/ in "$home"/*) place=$2${place#"$home"} ;; esac
        echo "$name $place/${path##*/}"
        last=$name
      done
    }
}
