# The driver's state as key=value lines for runfile.py. The loader's own cache says which library a program would get,
# wherever that is. lost= is a file that is missing, or whose size or time differs from what the installer left.
: "${version:?}"
: "${installing:?}"
: "${record:?}"
: "${libraries:?}"
: "${programs:?}"
newline='
'
read -r kernel </proc/sys/kernel/osrelease
echo "module=$(modinfo -k "$kernel" -F version nvidia)"
loaded=
if [ -d /sys/module/nvidia ]; then read -r loaded </sys/module/nvidia/version; echo "loaded=$loaded"; fi
if [ -d /sys/module/nvidia_uvm ]; then echo uvm=yes; fi
for built in "/var/lib/dkms/nvidia/$version/$kernel"/*/module; do if [ -d "$built" ]; then echo dkms=yes; break; fi; done
if [ -e "/usr/src/nvidia-$version/dkms.conf" ]; then echo source=yes; fi
if [ -e "$installing" ]; then echo cut=yes; fi
if [ -e "$record.theirs" ]; then echo theirs=yes; fi
eval "set -- $libraries"
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
[ -s "$record" ] || exit 0
recorded=$(cat "$record")
set --
ours=
IFS=$newline
set -f
for row in $recorded; do
  set -- "$@" "${row%%|*}"
  [ -n "$ours" ] || case $row in */libcuda.so.[0-9]*'|'*) ours=${row##*/libcuda.so.} ours=${ours%%|*} ;; esac
done
case $ours in *[!0-9.]*) ;; ?*) echo "ours=$ours" ;; esac
case $recorded in *"/libcuda.so.$version|"*) echo record=yes ;; *) exit 0 ;; esac
now=$(stat -c '%n|%s|%Y' "$@")
[ "$now" != "$recorded" ] || exit 0
printf '%s\n' "$now" | diff - "$record" | sed -n 's/^> \([^|]*\).*/lost=\1/p' | head -n 3
exit 0
