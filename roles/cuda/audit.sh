toolkits=
for home in /usr/local/cuda-[0-9]*; do
  series=${home#/usr/local/cuda-}
  case $series in *[!0-9.]*) continue ;; *.*) ;; *) continue ;; esac  # cuda-11 is a link of the alternatives
  [ -d "$home/targets" ] || [ -x "$home/bin/nvcc" ] || continue
  toolkits="$toolkits $series"
  if [ -x "$home/bin/nvcc" ]; then
    value=$(bounded "$home/bin/nvcc" -V)
    case $value in *", V"[0-9]*) value=${value##*, V}; say "nvcc $series" "V${value%%[!0-9.]*}" ;; esac
  fi
done
say toolkits "${toolkits# }"
value=
if [ -L /usr/local/cuda ] || [ -e /usr/local/cuda ]; then well_known "$(readlink -m -- /usr/local/cuda)"; fi
say link "$value"
set --
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do [ ! -f "$file" ] || set -- "$@" "$file"; done
value=
# shellcheck disable=SC2013  # apt reads no file with a blank in its name
[ $# -eq 0 ] || for file in $(grep -lsE '^[[:space:]]*(deb|URIs:).*cuda' "$@"); do value="$value ${file##*/}"; done
say sources "${value# }"
