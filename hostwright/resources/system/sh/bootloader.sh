# What decides which kernel boots next: "config FILE", then "grub NUMBER:LINE" for the lines of GRUB's menu that choose;
# "env NAME=VALUE" of its environment; "default FILE:NUMBER:LINE" of the settings that the menu is made of; "link NAME
# TARGET" of links to kernels; "other FILE" of another boot loader; of systemd-boot "default loader FILE:NUMBER:LINE",
# "chosen NAME VALUE" of the firmware's variables that come before its file, and "entry FILE:NUMBER:LINE" of its entries.
grub=
for file in /boot/grub/grub.cfg /boot/grub2/grub.cfg; do
  if [ -e "$file" ]; then grub=$file; break; fi
done
if [ -n "$grub" ]; then
  echo "config $grub"
  choose='set[[:space:]]+default=|(menuentry|submenu)[[:space:]]|linux(16|efi)?[[:space:]]|blscfg|\}'
  grep -anE "^[[:space:]]*($choose)" "$grub" | cut -c 1-500 | sed 's/^/grub /'
fi
for file in /boot/grub/grubenv /boot/grub2/grubenv; do
  if [ -e "$file" ]; then grep -aE '^(saved|next)_entry=' "$file" | cut -c 1-300 | sed 's/^/env /'; fi
done
grep -anHsE '^[[:space:]]*(export[[:space:]]+)?GRUB_(DEFAULT|CMDLINE_LINUX(_DEFAULT)?)=' \
  /etc/default/grub /etc/default/grub.d/*.cfg | cut -c 1-500 | sed 's/^/default /'
for file in /vmlinuz /vmlinuz.old /boot/vmlinuz /boot/vmlinuz.old; do
  if [ -L "$file" ]; then echo "link $file $(readlink "$file")"; fi
done
for file in /boot/loader/loader.conf /boot/efi/loader/loader.conf /efi/loader/loader.conf /boot/extlinux/extlinux.conf; do
  [ -e "$file" ] || continue
  echo "other $file"
  case $file in *extlinux*) continue ;; esac
  grep -anHsE '^default[[:space:]]' "$file" | cut -c 1-300 | sed 's/^/loader /'
  for place in "${file%/loader.conf}" /boot/loader; do
    grep -anHsE '^(title|version|sort-key|linux|efi|options|machine-id)[[:space:]]' "$place"/entries/*.conf |
      cut -c 1-700 | sed 's/^/entry /'
    if [ "$place" = /boot/loader ]; then break; fi
  done
  for name in LoaderEntryOneShot LoaderEntryDefault; do
    value=$(tail -qc +5 "/sys/firmware/efi/efivars/$name-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f" 2>/dev/null | tr -d '\000')
    if [ -n "$value" ]; then echo "chosen $name $value"; fi
  done
  break
done
exit 0
