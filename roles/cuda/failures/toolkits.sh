# For each toolkit at $link or $link-VERSION, separated by tabs: its path, where it leads, which of the $parts it has
# (and $runtime, if its library is in $libraries), and cuDNN's version from its $header.
: "${link:?}"
: "${parts:?}"
: "${libraries:?}"
: "${runtime:?}"
: "${header:?}"
eval "set -- $parts"
above=$(readlink -m -- "${link%/*}")  # which may be a link itself
for home in "$link" "$link"-[0-9]*; do
  [ -e "$home" ] || [ -L "$home" ] || continue
  has=; cudnn=
  for part; do
    [ ! -e "$home/$part" ] || has="$has $part"
  done
  for library in "$home/$libraries/$runtime".so*; do
    if [ -e "$library" ]; then has="$has $runtime"; break; fi
  done
  if [ -f "$home/$header" ]; then
    while read -r _ name number _; do
      case $name in CUDNN_MAJOR|CUDNN_MINOR|CUDNN_PATCHLEVEL) cudnn=$cudnn${cudnn:+.}$number ;; esac
    done <"$home/$header"
  fi
  leads=$(readlink -m -- "$home")
  case $leads in "$above"/*) leads=${link%/*}${leads#"$above"} ;; esac
  printf '%s\t%s\t%s\t%s\n' "$home" "$leads" "${has# }" "$cudnn"
done
exit 0
