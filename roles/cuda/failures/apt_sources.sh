# "source FILE NUMBER LINE" of each apt list that mentions CUDA, and "key FILE old|new" of each keyring with one of
# NVIDIA's two keys; needs `dearmor`. A key is found by the eight bytes of its id, which each of its self-signatures
# contains: gpg is not needed, and it would write into a home directory. The distribution's own keyrings are skipped.
# For apt-key's keyrings, which may hold any key, each signer's id is printed as well (RFC 4880, 5.2.3.5: length 9, type
# 16, id), for the key of the stack's own repository.
# shellcheck disable=SC2086  # $found and $named hold one path per line
IFS='
'
set --
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [ ! -f "$list" ] || set -- "$@" "$list"  # a pipe would never end
done
found=
[ "$#" -eq 0 ] || found=$(grep -ls cuda "$@")
named=
if [ -n "$found" ]; then
  set -f
  awk '{ printf "source\t%s\t%d\t%s\n", FILENAME, FNR, substr($0, 1, 600) }' $found
  named=$(sed -nE 's,.*[Ss]igned-[Bb]y[:=][[:space:]]*(/[^] \t,]+).*,\1,p' $found | sort -u)
  set +f
fi
set --
for ring in $named /etc/apt/trusted.gpg; do [ ! -f "$ring" ] || set -- "$@" "$ring"; done
if [ -n "$found" ]; then
  for ring in /etc/apt/trusted.gpg.d/*.gpg /etc/apt/trusted.gpg.d/*.asc; do
    case $ring in */debian-*|*/ubuntu-*) ;; *) [ ! -f "$ring" ] || set -- "$@" "$ring" ;; esac
  done
fi
old=$(printf '\366\017\113\075\177\242\257\200'); new=$(printf '\244\264\151\226\073\370\143\314')
for ring; do
  ids=$(dearmor "$ring" | grep -oaF -e "$old" -e "$new")
  case $ids in *"$new"*) printf 'key\t%s\tnew\n' "$ring" ;; esac
  case $ids in *"$old"*) printf 'key\t%s\told\n' "$ring" ;; esac
done
if [ -f /etc/apt/trusted.gpg ]; then
  dearmor /etc/apt/trusted.gpg | od -An -v -tx1 | tr -d ' \n' | grep -oE '0910[0-9a-f]{16}' | sort -u | head -n 50 |
    while IFS= read -r id; do printf 'key\t/etc/apt/trusted.gpg\t%s\n' "${id#0910}"; done
fi
exit 0
