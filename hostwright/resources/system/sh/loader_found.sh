# found NAMES HOME: name and path, links in its directory's name followed, of what the loader opens for each of these
# names, which are words: the first entry of this architecture in its cache. What really lies below HOME is named by that,
# since HOME may itself be reached through a link. Whether the file is there is the concern of who brought it. It splits
# at line ends from then on.
# followed DIRECTORY: sets $place to it, links followed; where its name has none, without a process.
followed() {
  place=$1 above=$1
  case $1/ in [!/]* | *//* | */./* | */../*) ;; *) until [ -z "$above" ] || [ -L "$above" ]; do above=${above%/*}; done ;; esac
  [ -z "$above" ] || place=$(cd -P -- "$1" && pwd) || place=$1
}
found() {
  followed "$2"
  home=$place last=
  IFS='
'
  set -f
  for entry in $(/sbin/ldconfig -p); do
    name=${entry#"${entry%%[![:space:]]*}"} name=${name%% *}
    case " $1 " in *" $name "*) ;; *) continue ;; esac
    case $entry in *"$name (libc6,x86-64"*") => "*) ;; *) continue ;; esac
    [ "$name" != "$last" ] || continue
    path=${entry#*") => "}
    followed "${path%/*}"
    case $place/ in "$home"/*) place=$2${place#"$home"} ;; esac
    echo "$name $place/${path##*/}"
    last=$name
  done
}
