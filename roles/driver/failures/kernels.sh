# "kernel NAME HEADERS VERSION" of each bootable kernel, and "modules NAME HEADERS VERSION" of one without an image in /boot:
# HEADERS is yes or no, VERSION that of its nvidia module. "empty FILE" of an image that is, or of an initramfs that is or is
# missing while another kernel has one; "holds FILE" of one that is older than its kernel's nvidia module, and has such a module in it; "nouveau FILE" of one
# that is older than the $blacklist, and has nouveau in it. "service" if DKMS builds modules at the boot.
: "${blacklist:?}"
for d in /lib/modules/*; do
  k=${d##*/}
  [ -d "$d" ] || continue
  if [ -e "/boot/vmlinuz-$k" ]; then what=kernel; else what=modules; fi
  if [ -e "$d/build/Makefile" ]; then h=yes; else h=no; fi
  for m in nvidia nvidia-current-open nvidia-current; do  # Debian's have names of their own on the disk
    # shellcheck disable=SC2046  # file and version, without blanks
    set -- $(modinfo -k "$k" "$m" | sed -n 's/^filename: *//p; s/^version: *//p')
    if [ -n "${2:-}" ]; then break; fi
  done
  echo "$what $k $h ${2:-}"
  if [ "$what" = kernel ] && [ ! -s "/boot/vmlinuz-$k" ]; then echo "empty /boot/vmlinuz-$k"; fi
  i=/boot/initrd.img-$k
  if [ "$what" = kernel ] && [ ! -s "$i" ]; then
    for other in /boot/initrd.img-*; do
      if [ -s "$other" ]; then
        echo "empty $i"
        break
      fi
    done
  elif [ -s "$i" ] && [ "${1:-}" -nt "$i" ] && timeout -k 1 10 lsinitramfs "$i" | grep -qE '/nvidia(-current(-open)?)?\.ko'; then
    echo "holds $i"
  fi
  if [ -s "$i" ] && [ "$blacklist" -nt "$i" ] && timeout -k 1 10 lsinitramfs "$i" | grep -q '/nouveau\.ko'; then
    echo "nouveau $i"
  fi
done
if [ -e /etc/systemd/system/multi-user.target.wants/dkms.service ]; then echo service; fi
exit 0
