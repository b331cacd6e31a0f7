# The conflicts of apt's last run of dpkg, at most eight, each with the line before it, which names the archive. Then
# what packages' own scripts fail over: "dep FILE" of a file that says MODULES=dep to initramfs-tools, and "grub DISK" or
# "grub DISK gone" of each disk that debconf has for grub-pc.
tail -c 262144 /var/log/apt/term.log 2>/dev/null | awk '
  /^Log started: / { count = 0 }
  / trying to overwrite / { lines[++count] = last $0 }
  { last = $0 }
  END { for (n = 1; n <= count && n <= 8; n++) print lines[n] }'
grep -lsE '^[[:space:]]*MODULES=["'"'"']?dep' /etc/initramfs-tools/initramfs.conf /etc/initramfs-tools/conf.d/* |
  head -n 4 | sed 's/^/dep /'
awk '/^Name: / { ours = $2 == "grub-pc/install_devices" }
  ours && sub(/^Value: /, "") { gsub(/,/, " "); print }' /var/cache/debconf/config.dat 2>/dev/null |
  tr ' ' '\n' | grep '^/dev/' | head -n 8 |
  while read -r disk; do if [ -e "$disk" ]; then echo "grub $disk"; else echo "grub $disk gone"; fi; done
exit 0
