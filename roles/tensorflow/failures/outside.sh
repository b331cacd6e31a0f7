# Each place outside a venv with a TensorFlow, and the dist-info directories there of TensorFlow and of packages that
# break its import, separated by a tab. $nl and homes are those of the engine's homes probe. Users name what lies in their
# homes: a name with a line end, a tab or an escape code is passed over.
# shellcheck disable=SC2154
IFS=$nl; set -f
for home in $(homes); do set -- "$@" "$home"; done
set +f
places() {
  printf '%s\n' /usr/local/lib/python3*/dist-packages /usr/local/lib/python3*/site-packages \
    /usr/lib/python3/dist-packages
  for home; do for site in "$home"/.local/lib/python3*/site-packages; do printf '%s\n' "$site"; done; done
}
for site in $(places "$@"); do
  case $site in /*[[:cntrl:]]*) continue ;; /*) ;; *) continue ;; esac
  for tensorflow in "$site"/tensorflow-[0-9]*.dist-info "$site"/tensorflow_[cg]pu-[0-9]*.dist-info \
    "$site"/tf_nightly*-[0-9]*.dist-info; do
    if [ -d "$tensorflow" ]; then
      for dist in "$tensorflow" "$site"/numpy-[0-9]*.dist-info "$site"/protobuf-[0-9]*.dist-info; do
        case $dist in *[[:cntrl:]]*) continue ;; esac
        [ ! -d "$dist" ] || printf '%s\t%s\n' "$site" "${dist##*/}"
      done
      break
    fi
  done
done
exit 0
