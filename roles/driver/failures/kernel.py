"""Signs of kernels: a removed one, the next one, nouveau at the next boot, and causes of unwanted upgrades."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from hostwright.audit.failures.rule import FailureRule, Sign
from hostwright.audit.failures.wanted import wanted
from hostwright.common.untrusted import Pattern
from hostwright.plan.host.hostfacts import UNAME
from hostwright.plan.model import Change, Probe
from hostwright.resources.files.paths import content_probe, stat_probe
from hostwright.resources.packages.packages import DPKG
from hostwright.resources.system.kernel import KERNEL_GONE, Initramfs, KernelThere, is_loose_kernel
from hostwright.stack.versions import kernel_version
from hostwright.standard.roles.driver.failures.state import (
    DKMS_TREE,
    dkms_tree,
    library_versions,
    ours,
    running_kernel,
    wanted_version,
)
from hostwright.standard.roles.driver.rules import kernels_of
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU

if TYPE_CHECKING:
    from hostwright.audit.judging.look import Look

#: ``kernel NAME HEADERS VERSION`` of each bootable kernel: HEADERS is yes or no, VERSION that of its nvidia module.
KERNELS = Probe(
    """for i in /boot/vmlinuz-*; do
  k=${i#/boot/vmlinuz-}
  [ -d "/lib/modules/$k" ] || continue
  if [ -e "/lib/modules/$k/build/Makefile" ]; then h=yes; else h=no; fi
  echo "kernel $k $h $(modinfo -k "$k" -F version nvidia | head -n 1)"
done; exit 0"""
)

#: ``there NAME`` of each open driver that the running kernel has as a module, ``off NAME`` if it is blacklisted for
#: modprobe (by a file, or on the kernel's command line).
OPEN_DRIVERS = Probe(
    """c=$(timeout 10 modprobe -c) || exit 1
for m in nouveau nova_core nova_drm; do
  if modinfo -n "$m" >/dev/null; then echo "there $m"; fi
  if printf '%s\\n' "$c" | grep -qE "^(blacklist $m|install $m /.*(true|false).*)\\$"; then echo "off $m"; fi
done; exit 0"""
)

#: apt's own view of what may be upgraded unattended.
UNATTENDED = Probe(
    "timeout 10 apt-config dump | grep -E '^(Unattended-Upgrade::Package-Blacklist|APT::Periodic)::'; exit 0"
)

NOUVEAU_OFF = "/etc/modprobe.d/hostwright-nouveau.conf"  #: the role's own
PREFERENCES = "/etc/apt/preferences.d/hostwright-no-other-driver"  #: the role's own

_KERNEL = Pattern(r"kernel ([\w.+~-]{1,100}) (yes|no) ([\w.+~-]{0,60})")
_SETTING = Pattern(r'([\w:-]{1,100}) "([^"]*)";')
_BLACKLIST = "Unattended-Upgrade::Package-Blacklist::"


def removed(look: Look) -> Iterator[str]:
    """Neither ``/lib/modules/KERNEL`` nor ``/boot/vmlinuz-KERNEL`` of the running kernel is there, and others are."""
    for probe in KernelThere().probes():
        look.require(probe)
    change = KernelThere().plan(look.facts)
    if change is not None:
        yield f"running: {change.have}; to be booted: {change.want}"


def next_without_driver(look: Look) -> Iterator[str]:
    """A newer kernel than the running one can be booted and has no nvidia module, and DKMS cannot build it at the boot
    (no headers, not in its tree, or this driver release does not build on it); or its module is of another version.
    """
    state, running = ours(look), running_kernel(look)
    rows = [match for line in look.text(KERNELS).splitlines() if (match := _KERNEL.fullmatch(line))]
    newest = max(rows, key=lambda row: _numbers(row[1]), default=None)
    if state is None or newest is None or _numbers(newest[1]) <= _numbers(running):
        return
    kernel, headers, module = newest[1], newest[2], newest[3]
    if module:
        if module not in library_versions(state):
            yield f"{kernel}, beside the running {running}: its module is {module}"
        return
    reasons = [
        *(["no headers"] if headers == "no" else []),
        *(["the driver is not in DKMS's tree"] if wanted_version(look) not in dkms_tree(look).versions else []),
        *([f"driver {wanted_version(look)} builds on kernels {limit}"] if (limit := _limit(look, kernel)) else []),
    ]
    if reasons:
        yield f"{kernel}, beside the running {running}: no module; {', '.join(reasons)}"


def nouveau_not_blocked(look: Look) -> Iterator[str]:
    """No open driver has a card, and the running kernel's nouveau, nova_core or nova_drm may be loaded (modprobe -c
    shows no blacklist of it), or the initramfs is older than the role's blacklist.
    """
    initramfs = wanted(look, "driver", Initramfs)
    for probe in initramfs.probes():
        look.require(probe)
    lines = look.text(OPEN_DRIVERS).splitlines()
    if ours(look) is None or look.text(NOUVEAU).strip():
        return
    free = [line.removeprefix("there ") for line in lines if line.startswith("there ")]
    yield from (f"{name}: not on modprobe's blacklist" for name in free if f"off {name}" not in lines)
    change = initramfs.plan(look.facts)
    if change is not None and free:
        yield f"{change.what}: {change.have}"


def not_held(look: Look) -> Iterator[str]:
    """dpkg does not say of every installed kernel package that it is held."""
    if ours(look) is not None:
        yield from (f"{row.name} {row.version}: not held" for row in look.packages_where(is_loose_kernel))


def not_fenced(look: Look) -> Iterator[str]:
    """unattended-upgrades is installed and switched on, and apt's configuration (apt-config dump) does not keep it from
    the packages that the base role's never_unattended names.
    """
    row, fenced = look.packages.get("unattended-upgrades"), getattr(look.variables.get("base"), "never_unattended", ())
    matches = (_SETTING.fullmatch(line) for line in look.text(UNATTENDED).splitlines())
    settings = [(match[1], match[2]) for match in matches if match]
    values = dict(settings)
    off = values.get("APT::Periodic::Unattended-Upgrade", "0") == "0" or values.get("APT::Periodic::Enable", "1") == "0"
    if ours(look) is None or row is None or not row.present or off:
        return
    missing = [name for name in fenced if name not in {value for key, value in settings if key == _BLACKLIST}]
    if missing:
        yield f"not in {_BLACKLIST.rstrip(':')}: {', '.join(missing)}"


def not_pinned(look: Look) -> Iterator[str]:
    """/etc/apt/preferences.d/hostwright-no-other-driver is missing, or has another text than the driver role's."""
    for probe in (stat_probe(PREFERENCES), content_probe(PREFERENCES)):
        look.require(probe)
    if ours(look) is not None:
        changes = (change for change in look.changes.get("driver", ()) if isinstance(change, Change) and change.diff)
        yield from (f"{PREFERENCES}: {change.have}" for change in changes if change.what == f"file {PREFERENCES}")


def _numbers(kernel: str) -> tuple[int, ...]:
    """The key by which a boot loader orders kernels: 5.15.0-91-generic is 5, 15, 0, 91."""
    return tuple(int(number[0]) for number in Pattern("[0-9]{1,9}").finditer(kernel))


def _limit(look: Look, kernel: str) -> str:
    """The kernels on which the stack's driver builds, if this one is not among them."""
    driver, version = look.section(DriverSection), kernel_version(kernel)
    kernels = kernels_of(driver.version, driver)
    return kernels if kernels and version and not SpecifierSet(kernels).contains(version) else ""


KERNEL_RULES = (
    FailureRule(
        "kernel-removed",
        "",
        "the running kernel's package was removed or upgraded away, so that no module can be built for it or loaded",
        "Provision again: the base role reboots the host into a kernel that is installed",
        "GoogleCloudPlatform/compute-gpu-installation#18",
        sign=Sign("base", removed, (UNAME, KERNEL_GONE), provision=True),
    ),
    FailureRule(
        "next-kernel-without-driver",
        "",
        "the next boot takes a newer kernel, and that has no module of this driver: the host comes back without GPUs",
        "Before a reboot: install linux-headers-KERNEL and run dkms autoinstall -k KERNEL; where the driver does not"
        " build on it, remove that kernel (apt-get purge linux-image-KERNEL)",
        "GoogleCloudPlatform/compute-gpu-installation#18; dkms(8)",
        sign=Sign("base", next_without_driver, (KERNELS, DKMS_TREE, DPKG, UNAME), grave=False),
    ),
    FailureRule(
        "nouveau-not-blocked",
        "",
        "nothing keeps nouveau, or its successor nova, from taking the cards at the next boot",
        "Provision again: the driver role writes the blacklist and rebuilds the initramfs",
        "nvidia-installer misc.c; joanbm/nvidia-470xx-linux-mainline",
        sign=Sign("driver", nouveau_not_blocked, (OPEN_DRIVERS, NOUVEAU, DPKG), grave=False, provision=True),
    ),
    FailureRule(
        "kernel-not-held",
        "",
        "apt may move the kernel: the new one has no module of this driver until it is built, if it builds at all",
        "Provision again: the base role holds the kernel's packages (apt-mark hold)",
        "GoogleCloudPlatform/compute-gpu-installation#18; apt-mark(8)",
        sign=Sign("base", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "upgrades-not-fenced",
        "",
        "unattended-upgrades may move driver, toolkit or kernel while nobody looks",
        "Provision again: the base role names them in Unattended-Upgrade::Package-Blacklist; where a later file clears"
        " that list, remove it from /etc/apt/apt.conf.d",
        "shine-cluster#50; NVIDIA/nvidia-docker#804",
        sign=Sign("base", not_fenced, (UNATTENDED, DPKG), grave=False, provision=True),
    ),
    FailureRule(
        "driver-not-pinned",
        "",
        "apt may bring a distribution's driver beside the one from the .run, as somebody's dependency",
        "Provision again: the driver role writes the pins",
        "shine-cluster#50; apt_preferences(5)",
        sign=Sign("driver", not_pinned, (DPKG,), grave=False, provision=True),
    ),
)
