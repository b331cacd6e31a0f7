# The driver's state as key=value lines for runfile.py. The loader's own cache says which library a program would get,
# wherever that is. other= is a library of another version that no package owns: one that a program would get, or one
# beside it. stray= is a module of another version that no package owns and modprobe takes instead of DKMS's, or one
# beside it; packaged= is one that a package owns, and preferred= a line of depmod.d. shadow= is what a program would get
# where ldconfig's links cannot be turned back: path, file behind it, its package, and the line of the loader's
# configuration that names its directory, with tabs between. lost= is a file that is missing, or whose size or time
# differs from what the installer left. license= is that of the module on disk, "loaded kind=" that of the one in the kernel.
# holder= is a module of others that uses the driver's. Needs `held_by`.
: "${version:?}"
: "${installing:?}"
: "${record:?}"
: "${libraries:?}"
: "${links:?}"
: "${programs:?}"
newline='
'
# strays FILE: the driver's modules in the directory of one that wins over DKMS's, and the lines by which it may win
strays() {
  set -- "$1" "${1%/*}"
  for other in "$1" "$2"/nvidia.ko* "$2"/nvidia-uvm.ko* "$2"/nvidia-modeset.ko* "$2"/nvidia-drm.ko* "$2"/nvidia-peermem.ko*; do
    [ -e "$other" ] || continue
    owner=$(dpkg-query -S -- "$other" "/usr$other" "${other#/usr}" 2>/dev/null)
    [ -n "$owner" ] || echo "stray=$other"
    for built in "/lib/modules/$kernel/updates/dkms"/nvidia.ko*; do
      if [ -n "$owner" ] && [ -e "$built" ]; then echo "packaged=$other, of the package ${owner%%:*}"; fi
    done
  done
  grep -HsE '^[[:space:]]*override[[:space:]]+nvidia' /etc/depmod.d/*.conf /run/depmod.d/*.conf \
    /usr/local/lib/depmod.d/*.conf /lib/depmod.d/*.conf | sed 's/^/preferred=/'
}
read -r kernel </proc/sys/kernel/osrelease
file=
IFS=$newline
set -f
# The shell splits what these tools print in memory: `read` from a pipe would take a system call for each byte.
for row in $(modinfo -k "$kernel" nvidia nvidia-uvm); do
  unset IFS
  set +f
  key=${row%%:*}: value=${row#*:}
  value=${value#"${value%%[![:space:]]*}"} value=${value%"${value##*[![:space:]]}"}
  case $key in filename:) file=$value ;; esac
  case $key-${file##*/} in *uvm*) ;; license:-*) echo "license=$value" ;; esac
  [ "$key" = version: ] || continue
  case ${file##*/} in *uvm*) ;; *) echo "module=$value" ;; esac
  case $value-$file in "$version"-* | *-"/lib/modules/$kernel/updates/dkms/"*) ;; *) strays "$file" ;; esac
done
unset IFS
set +f
loaded=
if [ -d /sys/module/nvidia ]; then
  read -r loaded </sys/module/nvidia/version; echo "loaded=$loaded"
  kind=; read -r kind </proc/driver/nvidia/version
  case $kind in *' Open Kernel Module '*) echo 'loaded kind=open' ;; NVRM*) echo 'loaded kind=proprietary' ;; esac
fi
if [ -d /sys/module/nvidia_uvm ]; then echo uvm=yes; fi
held_by holder=
for built in "/var/lib/dkms/nvidia/$version/$kernel"/*/module; do if [ -d "$built" ]; then echo dkms=yes; break; fi; done
if [ -e "/usr/src/nvidia-$version/dkms.conf" ]; then echo source=yes; fi
if [ -e "$installing" ]; then echo cut=yes; fi
if [ -e "$record.theirs" ]; then echo theirs=yes; fi
eval "set -- $libraries"
others=
firsts=
read=$newline
# the first entry of this architecture for each library
wanted=" $* "
paths=$newline
IFS=$newline
set -f
for row in $(ldconfig -p); do
  name=${row#"${row%%[![:space:]]*}"} name=${name%% *}
  case $wanted in *" $name "*) ;; *) continue ;; esac
  case $row in *'(libc6,x86-64'*) ;; *) continue ;; esac
  case $paths in *"$newline$name "*) ;; *) paths="$paths$name ${row#*=> }$newline" ;; esac
done
unset IFS
set +f
for library; do
  first=
  case $paths in *"$newline$library "*) first=${paths#*"$newline$library "} first=${first%%"$newline"*} ;; esac
  path=${first%/*}/${library%.1}.$version
  if [ "$first" -ef "$path" ] && [ ! -L "$path" ] && cd -P -- "${first%/*}"; then path=$PWD/${path##*/}
  else path=$(readlink -e "$first"); fi
  echo "$library=$path"
  case $path in '' | */"${library%.1}.$version") ;; *) others="$others$path$newline" firsts="$firsts$first$newline" ;; esac
  case $read in *"$newline${path%/*}$newline"*) continue ;; esac
  read=$read${path%/*}$newline  # a pattern reads its whole directory
  # libnvidia-container and others have numbers of their own, never of three digits
  for other in "${path%/*}"/lib*.so.[0-9][0-9][0-9].*; do
    name=${other##*/}
    case " $* " in *" ${name%%.so.*}.so.1 "*) ;; *) case $name in libnvidia-*) ;; *) continue ;; esac ;; esac
    if [ -L "$other" ] || [ ! -e "$other" ] || [ "${other##*.so.}" = "$version" ]; then continue; fi
    others="$others$other$newline"
  done
done
if [ -n "$others" ]; then
  # dpkg names what lies in /usr/lib by either name
  owned=$newline$(printf %s "$others" | sed 'p; s,^/usr/lib/,/lib/,' | xargs -d '\n' dpkg-query -S -- 2>/dev/null |
    sed 's/^[^/]*: //; s,^/lib/,/usr/lib/,')$newline
  printf %s "$others" | sort -u | while read -r other; do
    case $owned in *"$newline$other$newline"*) ;; *) echo "other=$other" ;; esac
  done
fi
[ -z "$firsts" ] || home=$(sed -n 's,/libcuda\.so\.[0-9.]*|.*,,p' "$record" | head -n 1)
[ -z "$firsts" ] || printf %s "$firsts" | while read -r first; do
  path=$(readlink -e "$first")
  place=$(cd -P -- "${first%/*}" && pwd)
  owner=$(dpkg-query -S -- "$path" "${path#/usr}" 2>/dev/null)
  # a driver's library of no package is set aside, and a link of our own directory is turned back
  case $owner$path in /*/libcuda.so.[0-9]* | /*/libnvidia-*.so.[0-9]*) continue ;; esac
  if [ "$place" = "$(cd -P -- "${home:-/}" && pwd)" ] && { [ -z "$owner" ] || [ "$place" != "${path%/*}" ]; }; then continue; fi
  named=$(grep -anHsE '^[[:space:]]*/' /etc/ld.so.conf /etc/ld.so.conf.d/*.conf | while IFS=: read -r file number line; do
    line=${line%%#*} line=/${line#*/}
    while :; do case $line in *[[:space:]]) line=${line%?} ;; *) break ;; esac; done
    if [ "$(cd -P -- "$line" && pwd)" = "$place" ]; then echo "$file:$number"; break; fi
  done)
  printf 'shadow=%s\t%s\t%s\t%s\n' "$first" "$path" "${owner%%:*}" "$named"
done
eval "set -- $programs"
for program; do [ -x "/usr/bin/$program" ] || echo "lost=/usr/bin/$program"; done
[ -s "$record" ] || exit 0
recorded=
while IFS= read -r row; do recorded=${recorded:+$recorded$newline}$row; done <"$record"
home=${recorded%%"/libcuda.so.$version|"*} home=${home##*"$newline"}
eval "set -- $links"
case $recorded in *"/libcuda.so.$version|"*) ;; *) set -- ;; esac
for name; do
  file=$home/${name%.so*}.so.$version
  if [ -e "$file" ] && ! [ "$home/$name" -ef "$file" ]; then echo "unlinked=$home/$name"; fi
done
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
