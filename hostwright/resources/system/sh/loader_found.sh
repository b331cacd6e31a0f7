# found NAMES HOME: name and path, links in its directory's name followed, of what the loader opens for each of these
# names, which are words: the first entry of this architecture in its cache. What really lies below HOME is named by that,
# since HOME may itself be reached through a link. Whether the file is there is the concern of who brought it. It leaves
# the directory, and splits at line ends from then on.
found() {
  if cd -P -- "$2"; then home=$PWD; else home=$2; fi
  last=
  IFS='
'
  set -f
  for entry in $(/sbin/ldconfig -p); do
    name=${entry#"${entry%%[![:space:]]*}"} name=${name%% *}
    case " $1 " in *" $name "*) ;; *) continue ;; esac
    case $entry in *"$name (libc6,x86-64"*") => "*) ;; *) continue ;; esac
    [ "$name" != "$last" ] || continue
    path=${entry#*") => "}
    if cd -P -- "${path%/*}"; then place=$PWD; else place=${path%/*}; fi
    case $place/ in "$home"/*) place=$2${place#"$home"} ;; esac
    echo "$name $place/${path##*/}"
    last=$name
  done
}
