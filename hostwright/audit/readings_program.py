r"""The shell that prints the values of a host, one ``name=value`` a line: for an audit from here, and for a host's own.

It is the same for every stack, so that answers which were stored can be compared with a stack of later: it prints what
there is, of every toolkit and of every package of a family, and the stack's values are picked from that. Only the
path of TensorFlow's environment is given to it, as ``$venv``.

It takes 25 to 40 ms, most of them dpkg's and ldconfig's: each program is started once, and small files are read by
the shell itself. Whatever may hang is given ten seconds. A value is one line, so that none can
pass for another name; the last line is ``complete=yes``.
"""

from __future__ import annotations

from hostwright.quoting import sh, words

#: Families of packages whose versions are printed: the toolkit's, cuDNN's, NCCL's, the driver's, Docker's, DKMS.
FAMILIES = (
    "cuda*", "libcub*", "libcud*", "libcuf*", "libcura*", "libcus*", "libnccl*", "libnpp*", "libnv*", "nvidia-*",
    "docker*", "containerd*", "dkms",
)  # fmt: skip

COMPLETE = "complete"  #: the name of the last line, which says that all others are there

#: ``printf %.200s`` cuts a value that nobody would read: a label of Prometheus, a cell of a table.
_HELPERS = r"""
LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
say() { printf '%s=%.200s\n' "$1" "${2%%
*}"; }
line_of() { line=; if [ -r "$1" ]; then IFS= read -r line <"$1"; fi; }
there() { if [ -e "$2" ]; then say "$1" yes; else say "$1" no; fi; }
bounded() { timeout -k 1 10 "$@"; }
"""

_BASE = r"""
line_of /proc/sys/kernel/osrelease; kernel=$line; say kernel "$kernel"
value=
if [ -r /etc/os-release ]; then
  while IFS= read -r line; do
    case $line in PRETTY_NAME=*) value=${line#*=}; value=${value#[\"\']}; value=${value%[\"\']}; break ;; esac
  done </etc/os-release
fi
say distribution "$value"
for one in product_name board_name bios_version bios_date; do line_of /sys/class/dmi/id/$one; say $one "$line"; done
cpu=; microcode=
while IFS=: read -r name value; do
  case $name in "model name"*) cpu=${value# } ;; microcode*) microcode=${value# }; break ;; "") break ;; esac
done </proc/cpuinfo
say cpu "$cpu"; say microcode "$microcode"
read -r name kilobytes unit </proc/meminfo
say memory "$(((kilobytes + 524288) / 1048576)) GiB"
value=off; f=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
if [ -r $f ]; then case $(od -An -tu1 -j4 -N1 $f) in *1*) value=on ;; esac; fi
say 'secure boot' $value
value=gone
for one in /sys/bus/pci/drivers/nouveau/*:* /sys/bus/pci/drivers/nova*/*:*; do [ ! -e "$one" ] || value=bound; done
say nouveau $value
there 'driver pins' /etc/apt/preferences.d/hostwright-no-other-driver
there 'upgrades blacklist' /etc/apt/apt.conf.d/52hostwright
"""

_PACKAGES = r"""
bounded dpkg-query -W -f='${db:Status-Status} package ${Package}=${Version}
${db:Status-Status} mark ${Package}=${db:Status-Want}
' -- "$@" | sed -nE '/^installed /!d
s/^installed //
s/^(mark .*)=hold$/\1=held/; s/^(mark .*)=[a-z]*(install|purge|unknown)$/\1=not held/; p
s/^package (docker[.]io|docker-ce)=/docker=\1 /p; s/^package nvidia-fabricmanager-[0-9]+=/fabric manager=/p'
"""

_DRIVER = r"""
line_of /sys/module/nvidia/version; say loaded "$line"
module=$(bounded modinfo -k "$kernel" -F version nvidia); say module "$module"
value=
if [ -n "$module" ]; then
  for one in "/var/lib/dkms/nvidia/$module/$kernel"/*/module; do [ ! -d "$one" ] || value=$module; done
fi
say 'dkms module' "$value"
if [ -x /usr/bin/nvidia-smi ]; then say nvidia-smi yes; else say nvidia-smi no; fi
states=$(bounded systemctl is-active nvidia-persistenced.service docker.service)
{ read -r persistence; read -r docker; } <<END
$states
END
say 'persistence daemon' "$persistence"; say 'docker service' "$docker"
"""

#: Of each library the first entry for this machine counts, as for the loader; its directory's links are followed.
_LIBRARIES = r"""
found=$(bounded ldconfig -p |
  sed -nE 's/^[[:space:]]*(lib(cuda|nvidia-ml|cudart|cudnn)[.]so[.][0-9.]+) [(]libc6,x86-64[^)]*[)] => /\1 /p')
seen=; set --
while read -r name path; do
  case " $seen " in *" $name "*) ;; *) seen="$seen $name"; set -- "$@" "${path%/*}" "$path" ;; esac
done <<END
$found
END
if [ -n "$seen" ]; then
  real=$(readlink -m -- "$@")
  for name in $seen; do
    read -r directory; read -r file
    if [ -e "$file" ]; then value=${file##*.so.}; else value=; fi
    say "library $name" "$value"; say "loader $name" "$directory/$name"
  done <<END
$real
END
fi
"""

_TOOLKITS = r"""
toolkits=; set --
for home in /usr/local/cuda-[0-9]*; do
  series=${home#/usr/local/cuda-}
  case $series in *[!0-9.]*) continue ;; *.*) ;; *) continue ;; esac  # cuda-11 is a link of the alternatives
  [ -d "$home/targets" ] || [ -x "$home/bin/nvcc" ] || continue
  toolkits="$toolkits $series"
  if [ -x "$home/bin/nvcc" ]; then
    value=$(bounded "$home/bin/nvcc" -V)
    case $value in *", V"[0-9]*) value=${value##*, V}; say "nvcc $series" "V${value%%[!0-9.]*}" ;; esac
  fi
  for file in "$home"/targets/x86_64-linux/lib/libcudnn*.so.[0-9]; do
    case ${file##*/} in *[!a-z0-9_.]*) ;; *) set -- "$@" "$file" ;; esac
  done
  header=$home/targets/x86_64-linux/include/cudnn_version.h; value=
  if [ -r "$header" ]; then
    while read -r define name number rest; do
      case $name in CUDNN_MAJOR|CUDNN_MINOR|CUDNN_PATCHLEVEL) value=$value${value:+.}$number ;; esac
    done <"$header"
    say "cudnn header $series" "$value"
  fi
done
say toolkits "${toolkits# }"
if [ $# -gt 0 ]; then
  real=$(readlink -m -- "$@")
  for file in "$@"; do
    read -r target
    series=${file#/usr/local/cuda-}; value=${target##*.so.}
    if [ -e "$target" ]; then say "cudnn ${series%%/*} ${file##*/}" "$value"; fi
  done <<END
$real
END
fi
value=; if [ -L /usr/local/cuda ] || [ -e /usr/local/cuda ]; then value=$(readlink -m -- /usr/local/cuda); fi
say 'cuda link' "$value"
value=
for file in $(grep -lsE '^[[:space:]]*(deb|URIs:).*cuda' /etc/apt/sources.list /etc/apt/sources.list.d/*); do
  value="$value ${file##*/}"
done
say 'cuda sources' "${value# }"
for major in 7 8 9; do
  value=
  for one in /usr/lib/x86_64-linux-gnu /usr/local/lib/x86_64-linux-gnu /usr/lib /usr/local/lib; do
    for file in "$one"/libcudnn*.so.$major*; do
      [ -e "$file" ] || [ -L "$file" ] || continue
      bounded dpkg-query -S -- "$file" >/dev/null || value="$value $file"
    done
  done
  say "cudnn strays $major" "${value# }"
done
there profile /etc/profile.d/cuda.sh
say ptxas "$(command -v ptxas)"
"""

_TENSORFLOW = r"""
python=; site=
if [ -n "$venv" ]; then
  for one in "$venv"/lib/python3.*/site-packages; do
    if [ -d "$one" ]; then site=$one; one=${one%/*}; python=${one##*/python}; fi
  done
fi
say python "$python"
for name in tensorflow numpy protobuf keras tensorboard; do
  value=
  for one in "$site/$name"-[0-9]*.dist-info; do
    if [ -n "$site" ] && [ -d "$one" ]; then one=${one##*/$name-}; value="$value ${one%.dist-info}"; fi
  done
  say "dist $name" "${value# }"
done
"""

_CONTAINER = r"""
value=
if [ -r /etc/docker/daemon.json ]; then value=$(tr -d '[:space:]' </etc/docker/daemon.json); fi
case $value in
  *'"runtimes":{'*'"nvidia":{'*) say 'nvidia runtime' yes ;;
  *) say 'nvidia runtime' no ;;
esac
"""

_RELEASE = r"""
sed -nE 's/^  "(stack|at)": "([^"]{0,200})".*/record \1=\2/p' /var/lib/hostwright/release.json
"""

#: What only root is told. A daemon that does not run is not asked: to ask would start it.
_DOCKER = r"""
driver=; runtime=
line_of /run/docker.pid
if [ -n "$line" ] && [ -d "/proc/$line" ]; then
  value=$(bounded docker info --format '{{.DefaultRuntime}} {{.CgroupDriver}}')
  runtime=${value%% *}; driver=${value##* }
fi
say 'default runtime' "$runtime"; say 'cgroup driver' "$driver"
"""

_END = "say complete yes\n"


def user_program(venv: str, packages: tuple[str, ...] = FAMILIES) -> str:
    """The part that needs no root. ``packages`` are names and shell patterns of those whose versions are printed."""
    asked = sh("venv=%s\n", venv) + f"set -- {words(packages)}"
    parts = (_HELPERS, asked, _PACKAGES, _BASE, _DRIVER, _LIBRARIES, _TOOLKITS, _TENSORFLOW, _CONTAINER, _RELEASE, _END)
    return "".join(parts)


def root_program() -> str:
    """The part that needs root."""
    return _HELPERS + _DOCKER + _END
