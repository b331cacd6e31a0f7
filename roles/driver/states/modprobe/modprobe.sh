# Lines of modprobe.d about NVIDIA's modules, and those of GRUB's settings that give words to the kernel, as
# "FILE:NUMBER:TEXT". Then "kernel WORD" for each word of the kernel's command line that keeps modules away. It needs
# `unmasked`.
: "${directories:?}"
set --
for directory in $directories; do set -- "$@" "$directory"/*.conf; done
pattern='^[[:space:]]*((alias|blacklist|install|remove|options)[[:space:]]+nvidia|(export[[:space:]]+)?GRUB_CMDLINE_LINUX(_DEFAULT)?=)'
rows=$(grep -anHsE -m 50 "$pattern" "$@" /etc/default/grub /etc/default/grub.d/*.cfg)
# shellcheck disable=SC2086  # several directories
unmasked "$rows" $directories /etc/default /etc/default/grub.d
read -r line </proc/cmdline
for word in $line; do
  case $word in module_blacklist=* | modprobe.blacklist=*) printf 'kernel %s\n' "$word" ;; esac
done
:
