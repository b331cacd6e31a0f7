"""The commands with which the NVIDIA driver is installed from its ``.run``, rebuilt and loaded.

Each step may be cut anywhere and run again. ``INSTALLING`` is written before the installer starts and removed when all
of its files are there, so that a half-copied driver is never taken for a whole one. ``RECORD`` holds name, size and
time of the files that the installer left, by which later damage is seen without reading them.
"""

from __future__ import annotations

from hostwright.common.quoting import sh, words
from hostwright.standard.roles.driver.states.gpu_use import OUR_SERVICES

STATE_DIR = "/var/lib/hostwright"
INSTALLING = f"{STATE_DIR}/driver.installing"
RECORD = f"{STATE_DIR}/driver.files"
LOG = "/var/log/nvidia-installer.log"

#: The programs of a headless installation; only those that exist are recorded.
PROGRAMS = ("nvidia-smi", "nvidia-modprobe", "nvidia-persistenced", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")

#: What R470's installer really understands (option_table.h of 470.182.03). Not --rebuild-initramfs,
#: --allow-installation-with-running-driver, --skip-module-load, --kernel-module-type: later branches, and fatal here.
FLAGS = (
    "--silent",  # no questions; errors go to stderr
    "--dkms",  # silent means "no" otherwise, and the next kernel would boot without a driver
    "--no-cc-version-check",  # with --dkms a minor mismatch of gcc is fatal, here and at each later rebuild
    "--disable-nouveau",  # the base role has done it; this keeps the installer from asking
    "--no-install-compat32-libs",  # no 32-bit programs on these hosts
    "--no-check-for-alternate-installs",  # the base role purged them; a left-over marker would abort a silent run
    f"--log-file-name={LOG}",
)

#: The services that hold the module, in the order in which they are stopped.
_SERVICES = "nvidia-dcgm dcgm nvidia-fabricmanager nvidia-persistenced"

#: The order in which the installer itself unloads (kernel.c).
_MODULES = "nv_peer_mem nvidia_peermem nvidia_vgpu_vfio nvidia_uvm nvidia_drm nvidia_modeset nvidia"

_HOLDERS = "find /proc/[0-9]*/fd -lname '/dev/nvidia*' 2>/dev/null | cut -d/ -f3 | sort -un"

#: TERM, ten seconds to end, KILL: a training job writes its checkpoint on TERM. Most hosts have no display manager to
#: stop, and a process may be gone before its signal comes: neither is an error, and the holders are looked at again.
_END_HOLDERS = f"""\
systemctl stop display-manager 2>/dev/null || true
holders() {{ {_HOLDERS}; }}
signal() {{ for p in $(holders); do kill "-$1" "$p" 2>/dev/null || true; done; }}
signal TERM
n=0; while [ -n "$(holders)" ] && [ "$n" -lt 100 ]; do n=$((n + 1)); sleep 0.1; done
signal KILL
"""

#: Work that came since somebody looked: it is found before anything is stopped, since jobs end with Fabric Manager.
_LEAVE_HOLDERS = f"""\
busy=
for p in $({_HOLDERS}); do
  read -r name 2>/dev/null <"/proc/$p/comm" || continue
  case $name in {"|".join(OUR_SERVICES)}) ;; *) busy="$busy $name ($p)" ;; esac
done
if [ -n "$busy" ]; then echo "hostwright: the kernel module nvidia is in use by:$busy"; exit 1; fi
"""

_UNLOAD = f"""\
%(first)sstopped=
for unit in {_SERVICES}; do
  if systemctl -q is-active "$unit"; then systemctl stop "$unit"; stopped="$stopped $unit"; fi
done
%(force)s
for module in {_MODULES}; do
  [ -d "/sys/module/$module" ] || continue
  if modprobe -r "$module" || rmmod "$module"; then continue; fi
  echo "hostwright: the kernel module $module is in use by:"
  for p in $({_HOLDERS}); do echo "  $p $(cat "/proc/$p/comm" 2>/dev/null)"; done
  for unit in $stopped; do systemctl start "$unit" || true; done
  exit 1
done
"""

#: Every entry of any version goes: one of this version makes `dkms add` fail, another one is built for each new kernel.
#: What `dkms remove` cannot take away (a tree that was cut off) goes with the directory.
_FORGET_DKMS = """\
for entry in /var/lib/dkms/nvidia/*/; do
  entry=${entry%/}
  if [ -L "$entry" ] || [ ! -d "$entry" ]; then continue; fi
  dkms remove -m nvidia -v "${entry##*/}" --all || true
done
rm -rf /var/lib/dkms/nvidia
"""

#: With --dkms the installer looks for neither before it removes the old driver (install-from-cwd.c of 470.182.03), so
#: this looks first.
_TOOLS = """\
[ -e "/lib/modules/$(uname -r)/build/Makefile" ] || { echo "hostwright: no headers of the running kernel"; exit 1; }
for tool in cc make dkms; do
  command -v "$tool" >/dev/null || { echo "hostwright: no C compiler, make or dkms: $tool is missing"; exit 1; }
done
"""

#: The compiler's own words come last, since the last lines are those that an operator is shown;
#: a log without any is no failure of the telling.
#: Not every log that failed has a compiler's error in it: a `grep` that finds none is no error of its own.
_TELL = """\
tell() {
  status=$?
  for log in "$installer_log" "/var/lib/dkms/nvidia/$version/build/make.log"; do
    [ -s "$log" ] || continue
    echo "--- $log"
    tail -n 20 "$log"
    grep -E -m 10 ' error: |: error|^ERROR: modpost' "$log" || true
  done
  exit "$status"
}
"""

_PROGRAM_FILES = words(tuple(f"/usr/bin/{name}" for name in PROGRAMS))

_RECORD = f"""\
library=$(ldconfig -p | sed -n 's/^.*libcuda\\.so\\.1 (libc6,x86-64.*=> //p' | head -n 1)
mkdir -p {STATE_DIR}
for file in {_PROGRAM_FILES} "${{library%/*}}"/lib*.so."$version"; do
  if [ -e "$file" ]; then stat -c '%n|%s|%Y' "$file"; fi
done >{RECORD}.new
sync {RECORD}.new
mv -f {RECORD}.new {RECORD}
"""


def unload(*, force: bool, build: bool = True) -> str:
    """Stop the services and take the modules out of the kernel; ``force`` ends other processes first.

    Nothing is disturbed on a host on which the module could not be built afterwards (unless ``build`` says that none
    shall be), or, without ``force``, on which other processes use the GPU.
    """
    first, then = ("", _END_HOLDERS) if force else (_LEAVE_HOLDERS, "")
    return (_TOOLS if build else "") + _UNLOAD % {"first": first, "force": then}


def install(path: str, version: str, flags: tuple[str, ...]) -> str:
    """Run the installer at ``path``; on failure print what its log and DKMS's say."""
    head = sh("version=%s; installer_log=%s\n", version, LOG)
    run = f"sh {sh('%s', path)} {words((*FLAGS, *flags))} || tell\n"
    begin = f"mkdir -p {STATE_DIR}; rm -f {RECORD}; : >{INSTALLING}; sync {STATE_DIR}\n"
    return head + _TELL + begin + _FORGET_DKMS + run + _RECORD + f"rm -f {INSTALLING}"


def rebuild(version: str) -> str:
    """Build and install the module of a driver whose sources are there, for the running kernel."""
    head = sh("version=%s; installer_log=/dev/null\n", version)
    return head + _TOOLS + _TELL + _REBUILD


#: `dkms remove` fails where this kernel has no build yet; what counts is that the one after it builds.
_REBUILD = """\
kernel=$(uname -r)
dkms remove -m nvidia -v "$version" -k "$kernel" >/dev/null 2>&1 || true
# dkms takes a build that was deleted by hand for installed as long as its link is there, and refuses to build again
link="/var/lib/dkms/nvidia/kernel-$kernel-$(uname -m)"
if [ -L "$link" ] && ! [ -e "$link" ]; then rm -f "$link"; fi
[ -e "/var/lib/dkms/nvidia/$version/source" ] || rm -rf "/var/lib/dkms/nvidia/$version"
[ -d "/var/lib/dkms/nvidia/$version" ] || dkms add -m nvidia -v "$version"
dkms install --force -m nvidia -v "$version" -k "$kernel" || tell
"""

#: The services that an operator or the stack enabled come back; whether they run is looked at afterwards.
LOAD = f"""\
for module in nvidia nvidia-uvm; do
  modprobe "$module" || {{ status=$?; dmesg 2>/dev/null | grep -E 'NVRM|nvidia' | tail -n 10; exit "$status"; }}
done
for unit in {_SERVICES}; do
  if systemctl -q is-enabled "$unit" 2>/dev/null; then systemctl start "$unit" || true; fi
done
"""


def relink(version: str) -> str:
    """Turn the libraries' links back to the recorded files; with the links the loader's cache is right again."""
    return sh("version=%s\n", version) + _RELINK


_RELINK = f"""\
for name in libcuda.so libnvidia-ml.so; do
  file=$(sed -n "s:^\\(.*/$name\\.$version\\)|.*:\\1:p" {RECORD})
  ln -sfn "${{file##*/}}" "${{file%/*}}/$name.1"
done
ldconfig
"""


def record(version: str) -> str:
    """Write down the files of a driver that somebody else installed, as they are."""
    return sh("version=%s\n", version) + _RECORD
