# The driver's state as key=value lines for runfile.py. The loader's own cache says which library a program would get,
# wherever that is. lost= is a file that is missing, or whose size or time differs from what the installer left.
: "${version:?}"
: "${installing:?}"
: "${record:?}"
: "${libraries:?}"
: "${programs:?}"
kernel=$(uname -r)
echo "module=$(modinfo -k "$kernel" -F version nvidia)"
if [ -d /sys/module/nvidia ]; then echo "loaded=$(cat /sys/module/nvidia/version)"; fi
if [ -d /sys/module/nvidia_uvm ]; then echo uvm=yes; fi
if [ -d "/var/lib/dkms/nvidia/$version/$kernel/$(uname -m)/module" ]; then echo dkms=yes; fi
if [ -e "/usr/src/nvidia-$version/dkms.conf" ]; then echo source=yes; fi
if [ -e "$installing" ]; then echo cut=yes; fi
echo "ours=$(sed -n 's:.*/libcuda[.]so[.]\([0-9][0-9.]*\)|.*:\1:p' "$record" | head -n 1)"
if [ -e "$record.theirs" ]; then echo theirs=yes; fi
cache=$(ldconfig -p)
eval "set -- $libraries"
for library; do
  file=$(printf '%s\n' "$cache" | sed -n "s/^.*$library (libc6,x86-64.*=> //p" | head -n 1)
  echo "$library=$(readlink -e "$file")"
done
eval "set -- $programs"
for program; do [ -x "/usr/bin/$program" ] || echo "lost=/usr/bin/$program"; done
grep -q "/libcuda.so.$version|" "$record" || exit 0
echo record=yes
cut -d'|' -f1 "$record" | xargs -d '\n' stat -c '%n|%s|%Y' | diff - "$record" |
  sed -n 's/^> \([^|]*\).*/lost=\1/p' | head -n 3
exit 0
