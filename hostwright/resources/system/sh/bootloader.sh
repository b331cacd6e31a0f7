# What decides which kernel boots next: "config FILE", then "grub NUMBER:LINE" for the lines of GRUB's menu that choose;
# "env NAME=VALUE" of its environment; "default FILE:NUMBER:LINE" of the settings that the menu is made of; "link NAME
# TARGET" of links to kernels; "other FILE" of another boot loader.
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
  if [ -e "$file" ]; then echo "other $file"; fi
done
exit 0
