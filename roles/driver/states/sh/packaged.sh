# The state of a driver from packages, in the lines of runfile.sh. Debian's modules have names of their own on the disk,
# with which its modprobe.d loads them; in the kernel they are called as everybody's.
: "${version:?}"
: "${libraries:?}"
read -r kernel </proc/sys/kernel/osrelease
for name in nvidia nvidia-current-open nvidia-current; do
  module=$(modinfo -k "$kernel" -F version "$name" 2>/dev/null) || continue
  echo "module=$module"
  echo "license=$(modinfo -k "$kernel" -F license "$name")"
  break
done
if [ -d /sys/module/nvidia ]; then
  read -r loaded </sys/module/nvidia/version; echo "loaded=$loaded"
  kind=; read -r kind </proc/driver/nvidia/version
  case $kind in *' Open Kernel Module '*) echo 'loaded kind=open' ;; NVRM*) echo 'loaded kind=proprietary' ;; esac
fi
if [ -d /sys/module/nvidia_uvm ]; then echo uvm=yes; fi
for built in "/var/lib/dkms"/nvidia*/"$version/$kernel"/*/module; do if [ -d "$built" ]; then echo dkms=yes; break; fi; done
for source in /usr/src/nvidia*-"$version"/dkms.conf; do if [ -e "$source" ]; then echo source=yes; break; fi; done
eval "set -- $libraries"
paths=$(ldconfig -p | sed -n 's/^[[:space:]]*\(lib[a-z-]*\.so\.1\) (libc6,x86-64.*=> /\1 /p')
for library; do
  echo "$library=$(printf '%s\n' "$paths" | sed -n "s/^$library //p" | head -n 1 | xargs -r readlink -e)"
done
exit 0
