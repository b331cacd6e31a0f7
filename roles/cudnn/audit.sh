set --
for home in /usr/local/cuda-[0-9]*; do
  series=${home#/usr/local/cuda-}
  case $series in *[!0-9.]*) continue ;; *.*) ;; *) continue ;; esac  # cuda-11 is a link of the alternatives
  for file in "$home"/targets/x86_64-linux/lib/libcudnn*.so.[0-9]; do
    case ${file##*/} in *[!a-z0-9_.]*) ;; *) set -- "$@" "$file" ;; esac
  done
  header=$home/targets/x86_64-linux/include/cudnn_version.h; value=
  if [ -r "$header" ]; then
    while read -r _ name number _; do
      case $name in CUDNN_MAJOR|CUDNN_MINOR|CUDNN_PATCHLEVEL) value=$value${value:+.}$number ;; esac
    done <"$header"
    say "header $series" "$value"
  fi
done
if [ $# -gt 0 ]; then
  real=$(readlink -m -- "$@")
  for file in "$@"; do
    read -r target
    series=${file#/usr/local/cuda-}; value=${target##*.so.}
    if [ -e "$target" ]; then say "${series%%/*} ${file##*/}" "$value"; fi
  done <<END
$real
END
fi
for major in 7 8 9; do
  value=
  for one in /usr/lib/x86_64-linux-gnu /usr/local/lib/x86_64-linux-gnu /usr/lib /usr/local/lib; do
    for file in "$one"/libcudnn*.so."$major"*; do
      [ -e "$file" ] || [ -L "$file" ] || continue
      bounded dpkg-query -S -- "$file" >/dev/null || value="$value $file"
    done
  done
  say "strays $major" "${value# }"
done
