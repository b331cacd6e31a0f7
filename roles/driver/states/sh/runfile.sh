# The driver's state as key=value lines for runfile.py. The loader's own cache says which library a program would get,
# wherever that is. lost= is a file that is missing, or whose size or time differs from what the installer left.
: "${version:?}"
: "${installing:?}"
: "${record:?}"
: "${libraries:?}"
: "${programs:?}"
read -r kernel machine <<END
$(uname -rm)
END
echo "module=$(modinfo -k "$kernel" -F version nvidia)"
loaded=
if [ -d /sys/module/nvidia ]; then read -r loaded </sys/module/nvidia/version; echo "loaded=$loaded"; fi
if [ -d /sys/module/nvidia_uvm ]; then echo uvm=yes; fi
if [ -d "/var/lib/dkms/nvidia/$version/$kernel/$machine/module" ]; then echo dkms=yes; fi
if [ -e "/usr/src/nvidia-$version/dkms.conf" ]; then echo source=yes; fi
if [ -e "$installing" ]; then echo cut=yes; fi
echo "ours=$(sed -n '\:.*/libcuda[.]so[.][0-9][0-9.]*|:{s:.*/libcuda[.]so[.]\([0-9][0-9.]*\)|.*:\1:p;q;}' "$record")"
if [ -e "$record.theirs" ]; then echo theirs=yes; fi
eval "set -- $libraries"
newline='
'
# the first entry of this architecture for each library
# shellcheck disable=SC2016  # awk's
first='/[(]libc6,x86-64/ && index(wanted, " " $1 " ") && !seen[$1]++'
paths=$(ldconfig -p | awk -v wanted=" $* " "$first")
for library; do
  path=
  case $paths in *"$library "*) path=${paths#*"$library "} path=${path#*=> } path=${path%%"$newline"*} ;; esac
  echo "$library=$(readlink -e "$path")"
done
eval "set -- $programs"
for program; do [ -x "/usr/bin/$program" ] || echo "lost=/usr/bin/$program"; done
grep -q "/libcuda.so.$version|" "$record" || exit 0
echo record=yes
cut -d'|' -f1 "$record" | xargs -d '\n' stat -c '%n|%s|%Y' | diff - "$record" |
  sed -n 's/^> \([^|]*\).*/lost=\1/p' | head -n 3
exit 0
