# "tree VERSION" of each nvidia in DKMS's tree, "built VERSION KERNEL", and for the remains of a failed build
# "log VERSION" with make.log's first line, and "error VERSION" with its lines about errors; then "broken MODULE/VERSION"
# of each module, nvidia or not, without a source that says how it is built: at such a one dkms stops; and
# "other MODULE/VERSION" with make.log's first line of each other module whose build failed; "next WORDS" of what keeps
# DKMS from building nvidia's for the next kernel; "unlisted FILE" of a module of nvidia's for the running kernel that depmod's index does not name.
for t in /var/lib/dkms/nvidia/* /var/lib/dkms/nvidia-current*/*; do
  v=${t##*/}
  if [ -L "$t" ] || [ ! -d "$t" ] || [ "$v" = original_module ]; then continue; fi
  echo "tree $v"
  for b in "$t"/[0-9]*/*/module; do
    [ -d "$b" ] || continue
    b=${b#"$t/"}; echo "built $v ${b%%/*}"
  done
  m=$t/build/make.log
  if [ ! -s "$m" ]; then continue; fi
  echo "log $v $(head -n 1 "$m" | cut -c 1-200)"
  grep -aE -m 8 'error: |: error|^ERROR: modpost|^FATAL: modpost|No space left on device|No rule to make target' "$m" |
    cut -c 1-300 | sed "s|^|error $v |"
done
for t in /var/lib/dkms/*/*; do
  if [ -L "$t" ] || [ ! -d "$t" ] || [ "${t##*/}" = original_module ]; then continue; fi
  [ -e "$t/source/dkms.conf" ] || echo "broken ${t#/var/lib/dkms/}"
  case $t in /var/lib/dkms/nvidia/* | /var/lib/dkms/nvidia-current*) continue ;; esac
  if [ -s "$t/build/make.log" ]; then echo "other ${t#/var/lib/dkms/} $(head -n 1 "$t/build/make.log" | cut -c 1-200)"; fi
done
for t in /var/lib/dkms/nvidia/*/source /var/lib/dkms/nvidia-current*/*/source; do
  [ -e "$t/dkms.conf" ] || continue
  n=${t#/var/lib/dkms/} n=${n%%/*} v=${t%/source} v=${v##*/}
  set -- "$t/dkms.conf"
  for f in "/etc/dkms/$n.conf" "/etc/dkms/$n-$v.conf"; do [ ! -f "$f" ] || set -- "$@" "$f"; done
  a=$(grep -anHE '^[[:space:]]*AUTOINSTALL=' "$@" | tail -n 1)
  case $a in
    '') echo "next $t/dkms.conf has no AUTOINSTALL=yes" ;;
    *AUTOINSTALL=[\"\']*[yY]* | *AUTOINSTALL=[yY]*) ;;
    *) echo "next $a" ;;
  esac
  if [ $# -gt 1 ]; then shift && grep -anHE '^[[:space:]]*BUILD_EXCLUSIVE' "$@" | head -n 2 | sed 's/^/next /'; fi
done
if [ -d /var/lib/dkms/nvidia ] || [ -d /var/lib/dkms/nvidia-current ]; then
  [ ! -e /etc/dkms/no-autoinstall ] || echo 'next /etc/dkms/no-autoinstall is there'
  command -v dkms >/dev/null || echo 'next the program dkms is not on the host'
  for f in /etc/kernel/postinst.d/dkms /etc/kernel/header_postinst.d/dkms; do
    if [ ! -x "$f" ] && grep -qsxF "$f" /var/lib/dpkg/info/dkms.list; then
      echo "next $f, by which the next kernel gets its modules, is not there or may not be executed"
    fi
  done
fi
read -r k </proc/sys/kernel/osrelease
for f in /lib/modules/"$k"/updates/dkms/nvidia.ko* /lib/modules/"$k"/kernel/drivers/video/nvidia.ko*; do
  if [ -e "$f" ] && ! grep -qsF "/${f##*/}:" "/lib/modules/$k/modules.dep"; then echo "unlisted $f"; fi
done; exit 0
