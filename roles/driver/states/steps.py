"""Shell commands that install the NVIDIA driver from its ``.run``, rebuild its module and load it.

Each step may be interrupted at any point and run again. While the installer runs, ``INSTALLING`` exists, so that a
half-copied driver never counts as complete. ``RECORD`` has name, size and time of the installed files, to detect later
damage.
"""

from __future__ import annotations

from hostwright.resources import KEEP_ASIDE
from hostwright.roles import sh, sh_file, words
from hostwright.standard.roles.driver.states.device_files import MAKE_DEVICES
from hostwright.standard.roles.driver.states.gpu_use import OUR_SERVICES

STATE_DIR = "/var/lib/hostwright"
INSTALLING = f"{STATE_DIR}/driver.installing"
RECORD = f"{STATE_DIR}/driver.files"
#: units that write the CDI specification when a module is installed. Without a driver, they would fail repeatedly.
_REFRESH = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
#: path on the host of the list of units and containers stopped for the driver
UNITS = "/run/hostwright-driver.units"
LOG = "/var/log/nvidia-installer.log"

PROGRAMS = ("nvidia-smi", "nvidia-modprobe", "nvidia-persistenced", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")

#: installer options that every installer from R470 on accepts (option_table.h of 470.182.03)
FLAGS = (
    "--silent",  # with this option, the installer does not prompt, and prints errors on stderr
    "--dkms",  # without DKMS, the next kernel would boot without a driver
    # Without this option, another minor version of gcc is fatal, now and at each rebuild.
    "--no-cc-version-check",
    "--disable-nouveau",  # the role has already disabled nouveau, so the installer need not prompt
    "--no-install-compat32-libs",  # GPU hosts run no 32-bit programs
    # A left-over marker of a purged driver would abort a silent installation.
    "--no-check-for-alternate-installs",
    f"--log-file-name={LOG}",
)

#: kernel modules to unload, in the order of the installer (kernel.c)
_MODULES = (
    "nv_peer_mem", "nvidia_peermem", "nvidia_vgpu_vfio", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia",
)  # fmt: skip

#: shell code that checks headers and tools. With --dkms, the installer removes the old driver before its own check
#: (install-from-cwd.c of 470.182.03).
_TOOLS = """\
[ -e "/lib/modules/$(uname -r)/build/Makefile" ] || { echo "hostwright: no headers of the running kernel"; exit 1; }
for tool in cc make dkms; do
  command -v "$tool" >/dev/null || { echo "hostwright: no C compiler, make or dkms: $tool is missing"; exit 1; }
done
"""


HELD_BY = sh_file(__file__, "sh/held_by.sh", modules=_MODULES)
_PERSONAL = sh_file(__file__, "sh/personal.sh")


def unload(*, force: bool, build: bool = True) -> str:
    """Return shell commands that stop the driver's services and unload its kernel modules.

    With ``force``, they also stop containers and other units, and end processes. Without ``force``, they fail before
    any change if other processes use the GPU. They also fail if a foreign module uses the driver's module or, with
    ``build``, if the module could not be built afterwards.
    """
    leave = sh_file(__file__, "sh/leave_holders.sh", ours=OUR_SERVICES)
    stop = sh_file(__file__, "sh/stop_services.sh", services=(*_REFRESH, *OUR_SERVICES), units=UNITS)
    units = sh_file(__file__, "sh/stop_units.sh", units=UNITS, ours=OUR_SERVICES)
    containers = sh_file(__file__, "sh/stop_containers.sh", units=UNITS)
    persons = _PERSONAL + sh_file(__file__, "sh/stop_persons.sh", units=UNITS)
    end = sh_file(__file__, "sh/end_holders.sh")
    return "".join(
        (
            _TOOLS if build else "",
            HELD_BY + sh_file(__file__, "sh/leave_modules.sh"),
            sh_file(__file__, "sh/holders.sh") + sh_file(__file__, "sh/bound.sh"),
            *((containers, units, persons, stop, end) if force else (leave, stop)),
            sh_file(__file__, "sh/unload.sh", modules=_MODULES, returned=returned()),
        )
    )


def returned(*, start: bool = True) -> str:
    """Return shell commands that start the units and containers that ``unload`` stopped, and report each result.

    Without ``start``, the commands only report the stopped units and containers.
    """
    return _PERSONAL + sh_file(__file__, "sh/returned.sh", units=UNITS, start="yes" if start else "no")


def install(path: str, version: str, flags: tuple[str, ...]) -> str:
    """Return shell commands that run the installer at ``path`` with ``flags``.

    On failure, the commands print the logs of the installer and of DKMS.
    """
    run = sh_file(
        __file__, "sh/install.sh", installer=path, flags=(*FLAGS, *flags), installing=INSTALLING, record=RECORD
    )
    return _tell(version, LOG) + run + record(version, theirs=False) + sh("rm -f %s", INSTALLING)


def rebuild(version: str) -> str:
    """Return shell commands that build the module of the driver ``version`` for the running kernel from its sources."""
    return _TOOLS + _tell(version, "/dev/null") + _REBUILD


#: shell function ``cannot_load`` that reports why the kernel accepts no module at all, with the kernel's own first
#: checks (may_init_module)
CANNOT_LOAD = sh_file(
    __file__, "cannot_load.sh", process="/proc/self/status", disabled="/proc/sys/kernel/modules_disabled"
)


def _tell(version: str, log: str) -> str:
    return sh_file(__file__, "sh/tell.sh", version=version, installer_log=log) + CANNOT_LOAD


#: shell code that rebuilds the module. Only the build has to succeed, because `dkms remove` fails without an earlier
#: build.
_REBUILD = """\
kernel=$(uname -r)
dkms remove -m nvidia -v "$version" -k "$kernel" >/dev/null 2>&1 || true  # without an earlier build
# dkms takes a build that was deleted by hand for installed as long as its link is there, and refuses to build again
link="/var/lib/dkms/nvidia/kernel-$kernel-$(uname -m)"
if [ -L "$link" ] && ! [ -e "$link" ]; then rm -f "$link"; fi
[ -e "/var/lib/dkms/nvidia/$version/source" ] || rm -rf "/var/lib/dkms/nvidia/$version"
[ -d "/var/lib/dkms/nvidia/$version" ] || dkms add -m nvidia -v "$version"
dkms install --force -m nvidia -v "$version" -k "$kernel" || tell
"""

LOAD = (
    CANNOT_LOAD
    + """\
for module in nvidia nvidia-uvm; do
  output=$(modprobe "$module" 2>&1) && continue || status=$?
  printf '%s\\n' "$output" >&2
  dmesg 2>/dev/null | grep -E 'NVRM|nvidia|Lockdown|Loading of' | tail -n 10
  printf '%s\\n' "$output" | cannot_load
  exit "$status"
done
"""
    + MAKE_DEVICES
    + f"for unit in {words((*OUR_SERVICES, *_REFRESH))}; do"
    + """
  systemctl -q is-enabled "$unit" 2>/dev/null || continue
  systemctl reset-failed "$unit" 2>/dev/null || true  # it had not failed
  timeout 60 systemctl start "$unit" || true  # whether it runs is checked afterwards
done
"""
    + returned()
)


#: libraries to which the installer creates links
_LINKED = ("cuda", "nvcuvid", "nvidia-ml", "nvidia-encode")
LINKS = (
    *(f"lib{name}.so{end}" for name in _LINKED for end in (".1", "")),
    *("libnvidia-opticalflow.so.1", "libnvidia-fbc.so.1", "libnvidia-cfg.so.1", "libnvidia-ptxjitcompiler.so.1"),
    *("libnvidia-allocator.so.1", "libnvidia-opencl.so.1", "libnvoptix.so.1"),
)


def relink(version: str, others: tuple[str, ...] = ()) -> str:
    """Return shell commands that link the driver's libraries to the files of ``version``, and update the loader's
    cache.

    The libraries in ``others`` are moved aside first, because ldconfig would prefer them.
    """
    values = sh("version=%s\nrecord=%s\nothers=%s\nlinks=%s\n", version, RECORD, words(others), words(LINKS))
    return KEEP_ASIDE + values + _SET_ASIDE + _RELINK


def modules_aside(strays: tuple[str, ...]) -> str:
    """Return shell commands that move the module files ``strays`` aside, so that modprobe loads DKMS's modules."""
    return KEEP_ASIDE + sh("others=%s\n", words(strays)) + _SET_ASIDE + "depmod -a\n"


_SET_ASIDE = """\
eval "set -- $others"
for file; do
  keep_aside "$file"
  rm -f -- "$file"
done
"""
_RELINK = """\
home=$(sed -n "s:^\\(.*\\)/libcuda\\.so\\.$version|.*:\\1:p" "$record" | head -n 1)
eval "set -- $links"
for name; do
  file=${name%.so*}.so.$version
  [ -e "$home/$file" ] || continue
  case $name in *.1) ;; *) file=$name.1 ;; esac
  ln -sfn "$file" "$home/$name"
done
ldconfig
"""


def record(version: str, *, theirs: bool) -> str:
    """Return shell commands that record the files of the driver ``version``.

    ``theirs``: whether somebody else installed the driver.
    """
    programs = tuple(f"/usr/bin/{name}" for name in PROGRAMS)
    return sh_file(
        __file__, "sh/record.sh", version=version, record=RECORD, programs=programs, theirs="yes" if theirs else "no"
    )
