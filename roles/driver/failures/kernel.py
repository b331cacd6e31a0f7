"""Signs of kernel problems: a removed kernel, a next kernel without the driver, nouveau at the next boot, unwanted
upgrades.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet

from hostwright.failures import FailureRule, ForPeople, Sign, Unread, wanted
from hostwright.resources import (
    BOOT_LOADER,
    DPKG,
    KERNEL_GONE,
    PCI,
    UNAME,
    Change,
    Initramfs,
    KernelThere,
    NextBoot,
    Probe,
    content_probe,
    is_loose_kernel,
    named_like,
    next_boot,
    stat_probe,
    words_set,
)
from hostwright.roles import Pattern, kernel_version, sh, sh_file
from hostwright.standard.roles.base.failures.host import NEXT_BOOT
from hostwright.standard.roles.driver.failures.state import (
    DKMS_TREE,
    DkmsTree,
    dkms_tree,
    library_versions,
    ours,
    running_kernel,
)
from hostwright.standard.roles.driver.rules import kernels_of
from hostwright.standard.roles.driver.section import DRIVER_PACKAGES, NOT_DRIVER, DriverSection
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids
from hostwright.standard.roles.driver.states.modprobe import (
    MODPROBE,
    UNMASKED,
    at_this_boot,
    blacklisted_by,
    forbidding,
)
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU
from hostwright.standard.roles.driver.states.others import NOUVEAU_OFF

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

#: probe that prints bootable kernels, DKMS's boot service, and empty or outdated initramfs files (format: kernels.sh).
#: On many hosts, only root can read an initramfs.
KERNELS = Probe(sh_file(__file__, "kernels.sh", blacklist=NOUVEAU_OFF), root=True)

#: probe that prints the kernel's open-source drivers for NVIDIA's cards, and whether they are blocked
OPEN_DRIVERS = Probe(
    """c=$(timeout 10 modprobe -c) || exit 1
off=$(printf '%s\\n' "$c" |
  sed -nE 's,^(blacklist|install) (nouveau|nova_core|nova_drm)(| /.*(true|false).*)$,\\1 \\2,p')
for m in nouveau nova_core nova_drm; do
  if modinfo -n "$m" >/dev/null; then echo "there $m"; fi
  case $off in *"blacklist $m"* | *"install $m"*) echo "off $m" ;; esac
done; exit 0"""
)

#: probe that prints configuration lines that assign NVIDIA's cards to vfio-pci or load vfio-pci early. ``built-in
#: NAME`` means that vfio-pci or pci-stub is part of the kernel.
VFIO = Probe(
    sh(
        "grep -anHsE -m 20 %s /etc/modprobe.d/*.conf /run/modprobe.d/*.conf /usr/lib/modprobe.d/*.conf /etc/modules"
        " /etc/modules-load.d/*.conf /etc/initramfs-tools/modules /etc/dracut.conf.d/*.conf\n"
        "for m in vfio_pci pci_stub; do if [ -e /sys/module/$m ]; then echo built-in $m; fi; done; exit 0",
        r"^[[:space:]]*(options[[:space:]]+vfio[-_]pci[[:space:]].*10[dD][eE]:|softdep[[:space:]]+(nvidia|nouveau|nova).*vfio[-_]pci"
        r"|vfio[-_]pci[[:space:]]*$|force_drivers.*vfio[-_]pci)",
    )
)

#: probe that prints ``FILE:NUMBER:TEXT`` for each udev rule that removes an NVIDIA device from the bus
UDEV = Probe(UNMASKED + sh_file(__file__, "udev.sh"))

UNATTENDED = Probe(
    "timeout 10 apt-config dump | grep -E"
    " '^(Unattended-Upgrade::(Package-Blacklist|Automatic-Reboot)|APT::Periodic::)'; exit 0"
)

#: probe that prints driver packages that an upgrade would change, as ``moves NAME OLD NEW`` or ``removes NAME``
MOVING = Probe(sh_file(__file__, "moving.sh", names=" ".join(DRIVER_PACKAGES)))

NOUVEAU_OFF = "/etc/modprobe.d/hostwright-nouveau.conf"
PREFERENCES = "/etc/apt/preferences.d/hostwright-no-other-driver"

_KERNEL = Pattern(r"(kernel|modules) ([\w.+~-]{1,100}) (yes|no) ([\w.+~-]{0,60})")
_STUB = Pattern(r"(vfio[-_]pci|pci[-_]stub)\.ids=")
_GIVEN = Pattern(r"(?i)10de:([0-9a-fA-F]{4})")
_SETTING = Pattern(r'([\w:-]{1,100}) "([^"]*)";')
#: pattern of a udev assignment that removes a card from the driver (udev(7))
_TAKES = Pattern(
    r'(?:ATTRS?|SYSFS)\{vendor\}=="0x10de".*\{(?:remove|driver_override)\}="[^"]'
    r"|options[ \t]+bbswitch[ \t].*load_state=0"
)
_SLOT = Pattern(r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b")
#: pattern of udev lines that bind a card to the NVIDIA driver
_FOR_US = Pattern(
    r"set-override \S+ nvidia\s*$|[\s\"'=]nvidia[\s\"'>].*driver_override|driver_override.*\bnvidia\b"
    r"|/drivers/nvidia/bind"
)
_CLASS = Pattern(r"ATTRS?\{class\}==\"([^\"]{1,40})\"")
_DISPLAYS = ("0x030000", "0x030200")  #: PCI class codes of VGA and 3D controllers
_BLACKLIST = "Unattended-Upgrade::Package-Blacklist::"
_MOVED = Pattern(r"(?:moves|removes) ([a-z0-9.+-]{1,100})(?: (\S{1,100}) (\S{1,100}))?")
_SCHEDULED = Pattern(r"(?m)^scheduled USEC ([0-9]{9,10})[0-9]{6}$")
_REBOOT = "Unattended-Upgrade::Automatic-Reboot"


def removed(ctx: AuditContext) -> Iterator[str]:
    """Neither ``/lib/modules/KERNEL`` nor ``/boot/vmlinuz-KERNEL`` of the running kernel exists, and other kernels have
    both.
    """
    for probe in KernelThere().probes():
        ctx.require(probe)
    change = KernelThere().plan(ctx.facts)
    if change is not None:
        yield f"running: {change.have}; to be booted: {change.want}"


@dataclass(frozen=True, slots=True)
class Kernel:
    """Kernel on the host, with the parts of the driver for it."""

    version: str
    image: bool  #: whether /boot has an image of the kernel
    headers: bool = False
    module: str = ""  #: version of the nvidia module for this kernel; empty: none
    service: bool = False  #: whether DKMS builds the kernel's modules at boot


def kernels_in(text: str) -> tuple[Kernel, ...]:
    """Return the kernels in the output of ``KERNELS``, newest first."""
    lines = text.splitlines()
    rows = (match for line in lines if (match := _KERNEL.fullmatch(line)))
    found = (Kernel(row[2], row[1] == "kernel", row[3] == "yes", row[4], "service" in lines) for row in rows)
    return tuple(sorted(found, key=lambda kernel: _numbers(kernel.version), reverse=True))


def booted_next(kernels: Sequence[Kernel], boot_loader: str) -> NextBoot:
    """Return the kernel that the host boots next, as far as known. ``boot_loader``: output of ``BOOT_LOADER``."""
    return next_boot(boot_loader, [kernel.version for kernel in kernels if kernel.image])


def lacks_driver(kernel: Kernel, versions: Collection[str], tree: DkmsTree, driver: DriverSection) -> str:
    """Return the reason why a boot of ``kernel`` would lack the driver; else empty.

    ``versions``: versions of the driver's libraries. ``tree``: nvidia's module in DKMS.
    """
    if kernel.module:
        return "" if kernel.module in versions else f"its module is {kernel.module}"
    if driver.precompiled:
        return f"no module; the package {driver.precompiled}-{kernel.version} is not installed"
    limit, version = kernels_of(driver.version, driver), kernel_version(kernel.version)
    reasons = [
        *([] if kernel.headers else ["no headers"]),
        *([] if driver.version in tree.versions else ["the driver is not in DKMS's tree"]),
        *([f"the module of driver {driver.version} supports kernels {limit}"]
          if limit and version and not SpecifierSet(limit).contains(version) else []),
    ]  # fmt: skip
    if not reasons and not kernel.service:
        reasons = ["no service builds the module at boot"]
    return f"no module; {', '.join(reasons)}" if reasons else ""


def next_without_driver(ctx: AuditContext) -> Iterator[str]:
    """GRUB or systemd-boot starts another kernel next, and that kernel lacks the driver: its nvidia module has another
    version, or is missing and DKMS cannot build it at boot. If the boot loader is unknown, a newer kernel without the
    driver is reported as not checked.
    """
    state, running = ours(ctx), running_kernel(ctx)
    kernels, boot_loader = kernels_in(ctx.text(KERNELS)), ctx.text(BOOT_LOADER)
    if state is None:
        return
    boot, tree = booted_next(kernels, boot_loader), dkms_tree(ctx)
    kernel = other_kernel(kernels, boot, running)
    why = lacks_driver(kernel, library_versions(state), tree, ctx.section(DriverSection)) if kernel else ""
    if not kernel or not why:
        return
    line = f"kernel {kernel.version}, not the running {running}: {why}"
    if boot.unknown:
        raise Unread(f"{boot.unknown}; {line}")
    yield from (line, boot.why)


def other_kernel(kernels: Sequence[Kernel], boot: NextBoot, running: str) -> Kernel | None:
    """Return the kernel that boots next; ``None`` if it is the kernel ``running``. If the boot loader is unknown, the
    newest kernel is assumed.
    """
    newest = next((kernel.version for kernel in kernels if kernel.image), running)
    taken = boot.kernel or (newest if _numbers(newest) > _numbers(running) else running)
    found = next((kernel for kernel in kernels if kernel.version == taken), Kernel(taken, image=False))
    return None if taken == running else found


def initramfs_old(ctx: AuditContext) -> Iterator[str]:
    """An initramfs contains an nvidia module and is older than the module on disk (lsinitramfs)."""
    if ours(ctx) is not None:
        yield from in_initramfs(ctx.text(KERNELS))


def in_initramfs(text: str) -> tuple[str, ...]:
    """Return a line for each initramfs with an outdated nvidia module. ``text``: output of ``KERNELS``."""
    files = (line.removeprefix("holds ") for line in text.splitlines() if line.startswith("holds /"))
    return tuple(f"{file} holds an nvidia module, and is older than that on the disk" for file in files)


def initramfs_empty(ctx: AuditContext) -> Iterator[str]:
    """A kernel's image is empty; or its initramfs is missing or empty, and another kernel has an initramfs."""
    files = (line.removeprefix("empty ") for line in ctx.text(KERNELS).splitlines() if line.startswith("empty /"))
    yield from (f"{file} is missing or empty" for file in files)


def blacklisted(ctx: AuditContext) -> Iterator[str]:
    """A kernel's command line has ``modprobe.blacklist=`` or ``module_blacklist=`` with nvidia or nvidia-uvm. It is the
    kernel that GRUB starts next or, if the module is not loaded, the running kernel.
    """
    boot_loader, state = ctx.text(BOOT_LOADER), ours(ctx)
    if state is None:
        return
    boot = booted_next(kernels_in(ctx.text(KERNELS)), boot_loader)
    places = ((boot.where, boot.words), *words_set(boot_loader))
    for where, words in dict.fromkeys((where, blacklisted_by(words)) for where, words in places):
        later = "" if {*words} <= {*boot.words} else " (update-grub puts it into GRUB's menu)"
        yield from [f"{where}: {' '.join(words)}{later}"] if words else []
    if not state.loaded and (words := at_this_boot(ctx.text(MODPROBE))):
        yield f"/proc/cmdline: {' '.join(words)}"


def given_to_vfio(ctx: AuditContext) -> Iterator[str]:
    """A line of ``modprobe.d``, or the command line of the kernel that GRUB starts next, gives a card to vfio-pci or
    pci-stub (``options vfio-pci ids=10de:…``), and that module is loaded before the driver.
    """
    ctx.require(PCI)
    boot = booted_next(kernels_in(ctx.text(KERNELS)), ctx.text(BOOT_LOADER))
    yield from for_vfio(ctx.text(VFIO), gpu_ids(ctx.facts), boot)


def for_vfio(text: str, cards: Collection[int], boot: NextBoot) -> tuple[str, ...]:
    """Return settings that assign one of the GPUs ``cards`` to vfio-pci or pci-stub before the driver is loaded.

    ``cards``: PCI device IDs. ``text``: output of ``VFIO``. ``boot``: command line of the next boot.
    """
    lines = [line for line in text.splitlines() if line[:1] == "/"]
    given = [line for line in lines if _gives(line, cards)]
    loads = [line for line in lines if not _GIVEN.search(line)]
    # modprobe.d does not apply to drivers that are built into the kernel.
    stubs = {line.removeprefix("built-in ") for line in text.splitlines()}
    words = [
        f"{boot.where}: {word}"
        for word in boot.words
        if (match := _STUB.match(word)) and _gives(word, cards) and (loads or match[1].replace("-", "_") in stubs)
    ]
    return (*words, *(given if loads else ()), *(loads if given or words else ()))


def _gives(text: str, cards: Collection[int]) -> bool:
    return any(int(row[1], 16) in cards for row in _GIVEN.finditer(text))


def removed_by_udev(ctx: AuditContext) -> Iterator[str]:
    """A udev rule writes ``remove`` for NVIDIA devices of a display's class, or of any class. A rule for a card's sound
    or USB functions is harmless.
    """
    yield from taking_cards(ctx.text(UDEV))


def taking_cards(text: str) -> tuple[str, ...]:
    """Return the udev rules that remove all GPUs at each boot. ``text``: output of ``UDEV``."""
    return tuple(line for line in text.splitlines() if _TAKES.search(line) and _of_displays(line))


def given_elsewhere(ctx: AuditContext) -> Iterator[str]:
    """driverctl has recorded another driver for a card's slot; or a udev rule, tmpfiles.d, an enabled unit, rc.local or
    cron writes to ``driver_override``, ``unbind`` or ``remove`` of that slot.
    """
    yield from overridden(ctx.text(UDEV))


def overridden(text: str) -> tuple[str, ...]:
    """Return configuration lines that remove a GPU, identified by its PCI slot, from the driver. ``text``: output of
    ``UDEV``.
    """
    lines = text.splitlines()
    cards = {line.removeprefix("card ") for line in lines if line.startswith("card ")}
    named = ((line, {slot[0] for slot in _SLOT.finditer(line.partition(":")[2])}) for line in lines if line[:1] == "/")
    return tuple(line for line, slots in named if slots & cards and not _FOR_US.search(line) and line not in
                 taking_cards(line))  # fmt: skip


def _of_displays(line: str) -> bool:
    classes = [match[1] for match in _CLASS.finditer(line)]
    return not classes or any(fnmatchcase(kind, each) for each in classes for kind in _DISPLAYS)


def forbidden(ctx: AuditContext) -> Iterator[str]:
    """A file of ``modprobe.d`` blocks nvidia or nvidia-uvm: by ``blacklist``, by an ``alias`` of another name (off), or
    by an ``install`` that does not load the module (/bin/false).
    """
    if ours(ctx) is not None:
        yield from map(str, forbidding(ctx.text(MODPROBE), renamed=ctx.section(DriverSection).renamed))


def nouveau_not_blocked(ctx: AuditContext) -> Iterator[str]:
    """No open-source driver holds a card, but nouveau, nova_core or nova_drm may be loaded: modprobe -c shows no
    blacklist for it, or the initramfs is older than the role's blacklist and may contain it (lsinitramfs).
    """
    initramfs = wanted(ctx, "driver", Initramfs)
    for probe in initramfs.probes():
        ctx.require(probe)
    lines = ctx.text(OPEN_DRIVERS).splitlines()
    if ours(ctx) is None or ctx.text(NOUVEAU).strip():
        return
    free = [line.removeprefix("there ") for line in lines if line.startswith("there ")]
    yield from (f"{name}: not on modprobe's blacklist" for name in free if f"off {name}" not in lines)
    change = initramfs.plan(ctx.facts)
    held = [line.removeprefix("nouveau ") for line in ctx.text(KERNELS).splitlines() if line.startswith("nouveau /")]
    if change is not None and (free or held):
        yield f"{change.what}: {change.have}" + (f"; {', '.join(held)} holds nouveau" if held else "")


def not_held(ctx: AuditContext) -> Iterator[str]:
    """An installed kernel package is not held in dpkg."""
    if ours(ctx) is not None:
        yield from (f"{row.name} {row.version}: not held" for row in ctx.packages_where(is_loose_kernel))


def not_fenced(ctx: AuditContext) -> Iterator[str]:
    """unattended-upgrades is enabled, and apt's configuration (apt-config dump) does not exclude all packages of the
    driver and all packages in the base role's never_unattended.
    """
    fenced = getattr(ctx.variables.get("base"), "never_unattended", ())
    fenced = (*fenced, *ctx.section(DriverSection).never_unattended())
    settings = _unattended(ctx)
    if ours(ctx) is None or not settings:
        return
    missing = [name for name in fenced if name not in {value for key, value in settings if key == _BLACKLIST}]
    if missing:
        yield f"not in {_BLACKLIST.rstrip(':')}: {', '.join(missing)}"


def reboots(ctx: AuditContext) -> Iterator[str]:
    """A shutdown is scheduled; or unattended-upgrades is enabled and may reboot the host (Automatic-Reboot)."""
    if at := _SCHEDULED.search(ctx.text(NEXT_BOOT)):
        yield f"a shutdown is scheduled for {datetime.fromtimestamp(int(at[1]), UTC):%Y-%m-%d %H:%M} UTC"
    values = dict(_unattended(ctx))
    if values.get(_REBOOT, "false").lower() in {"true", "1", "yes"}:
        yield f'{_REBOOT} "{values[_REBOOT]}", at {values.get(f"{_REBOOT}-Time", "once")}'


def _unattended(ctx: AuditContext) -> list[tuple[str, str]]:
    """Return apt's settings for unattended-upgrades; empty if unattended-upgrades is not installed or not enabled."""
    row = ctx.packages.get("unattended-upgrades")
    matches = (_SETTING.fullmatch(line) for line in ctx.text(UNATTENDED).splitlines())
    settings = [(match[1], match[2]) for match in matches if match]
    values = dict(settings)
    off = values.get("APT::Periodic::Unattended-Upgrade", "0") == "0" or values.get("APT::Periodic::Enable", "1") == "0"
    return [] if row is None or not row.present or off else settings


def loose_driver(ctx: AuditContext) -> Iterator[str]:
    """A package of the stack's driver is not held; or a simulated upgrade upgrades or removes a driver package."""
    rows = (ctx.packages.get(name) for name in ctx.section(DriverSection).packages)
    loose = {row.name: f"{row.name} {row.version}: not held" for row in rows if row and row.present and not row.held}
    yield from (loose | dict(_moving(ctx.text(MOVING)))).values()


def _moving(text: str) -> Iterator[tuple[str, str]]:
    for match in filter(None, map(_MOVED.fullmatch, text.splitlines())):
        name = match[1]
        if named_like(name, DRIVER_PACKAGES) and not named_like(name, NOT_DRIVER):
            moved = f"{name} {match[2]}: the next upgrade moves it to {match[3]}"
            yield name, moved if match[2] else f"{name}: the next upgrade removes it"


def not_pinned(ctx: AuditContext) -> Iterator[str]:
    """/etc/apt/preferences.d/hostwright-no-other-driver is missing, or its text differs from the driver role's."""
    for probe in (stat_probe(PREFERENCES), content_probe(PREFERENCES)):
        ctx.require(probe)
    if ours(ctx) is not None:
        changes = (change for change in ctx.changes.get("driver", ()) if isinstance(change, Change) and change.diff)
        yield from (f"{PREFERENCES}: {change.have}" for change in changes if change.what == f"file {PREFERENCES}")


def _numbers(kernel: str) -> tuple[int, ...]:
    return tuple(int(number[0]) for number in Pattern("[0-9]{1,9}").finditer(kernel))


FORBIDDEN_SIGN = Sign("driver", forbidden, (MODPROBE, DPKG), provision=True)
BLACKLISTED_SIGN = Sign("driver", blacklisted, (MODPROBE, KERNELS, BOOT_LOADER, DPKG))

KERNEL_RULES = (
    FailureRule(
        "kernel-removed",
        "",
        "the running kernel's package was removed or upgraded, so no module can be built for it or loaded",
        "Provision again: the base role reboots the host into an installed kernel",
        "GoogleCloudPlatform/compute-gpu-installation#18",
        sign=Sign("base", removed, (UNAME, KERNEL_GONE), provision=True),
    ),
    FailureRule(
        "next-kernel-without-driver",
        "",
        "the next boot starts another kernel, which has no module of this driver: the host will have no GPUs",
        "Before a reboot, install linux-headers-KERNEL and run dkms autoinstall -k KERNEL. Or let the boot loader "
        "start a kernel that has the module: GRUB_DEFAULT in /etc/default/grub, or grub-set-default, then "
        "update-grub; for systemd-boot, bootctl set-default, or default in its loader.conf",
        "GoogleCloudPlatform/compute-gpu-installation#18; dkms(8); GNU GRUB manual, default and saved_entry",
        names=(r"^kernel (?P<kernel>[\w.+-]{1,80}), not the running ",),
        sign=Sign("driver", next_without_driver, (KERNELS, BOOT_LOADER, DKMS_TREE, DPKG, UNAME), grave=False),
    ),
    FailureRule(
        "initramfs-old-module",
        "",
        "the initramfs contains an nvidia module from before the last change: the next boot loads that module, which "
        "does not match the libraries (Driver/library version mismatch)",
        "Run update-initramfs -u -k all (dracut --regenerate-all --force) and reboot. If the module is not needed "
        "that early, first remove nvidia from /etc/initramfs-tools/modules",
        "openSUSE/nvidia-driver-G06#25; openSUSE/sdbootutil#22; initramfs-tools(7)",
        sign=Sign("driver", initramfs_old, (KERNELS, DPKG), grave=False),
    ),
    FailureRule(
        "initramfs-missing",
        "",
        "a kernel's image is empty, or its initramfs is empty or missing, probably because /boot was full: a boot "
        "into it stops",
        "Do not reboot yet. Free space in /boot (df -h /boot; apt-get -s autoremove shows unneeded kernels; "
        "COMPRESS=xz in /etc/initramfs-tools/initramfs.conf makes each initramfs smaller), then run update-initramfs "
        "-c -k KERNEL and dpkg --configure -a. For an empty image, run apt-get install --reinstall linux-image-KERNEL",
        "initramfs-tools, update-initramfs(8); pop-os/pop#872",
        names=(r"/(?:vmlinuz|initrd\.img)-(?P<kernel>[\w.+-]{1,80}) is",),
        sign=Sign("base", initramfs_empty, (KERNELS,), grave=False),
    ),
    FailureRule(
        "card-for-vfio",
        "",
        "vfio-pci is loaded before the driver and takes the card for virtual machines: after a reboot the host "
        "does not have it",
        "If the host itself needs the card, remove what the evidence names, then run update-initramfs -u -k all, and "
        "update-grub for the command line. If a virtual machine needs it, remove the role driver from the host",
        "Linux drivers/vfio/pci/vfio_pci.c and drivers/pci/pci-stub.c, ids; modprobe.d(5), softdep",
        sign=Sign("driver", given_to_vfio, (VFIO, PCI, KERNELS, BOOT_LOADER), grave=False),
    ),
    FailureRule(
        "card-removed-by-udev",
        "",
        "a udev rule removes the cards from the PCI bus at each boot, or bbswitch switches them off, as laptops do "
        "to save power: the host has no GPUs",
        "Remove the file or the line that the evidence names (envycontrol, optimus-manager and others write it), "
        "then run udevadm control --reload and reboot",
        "udev(7); bayasdev/envycontrol",
        sign=Sign("driver", removed_by_udev, (UDEV,)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "card-for-another-driver",
        "",
        "each boot gives a card to another driver than NVIDIA's, such as vfio-pci for a virtual machine, or to none: "
        "the host does not have it",
        "If the host itself needs the card, undo the line: run driverctl unset-override SLOT if driverctl recorded "
        "it, else edit the file that the evidence names. If a virtual machine needs it, remove the role driver from "
        "the host",
        "driverctl(8); Linux Documentation/ABI/testing/sysfs-bus-pci, driver_override",
        names=(r"/driverctl\.d/(?:pci-)?(?P<slot>[0-9a-f:.]{7,12})",),
        sign=Sign("driver", given_elsewhere, (UDEV,), grave=False),
        treatment=ForPeople(),
    ),
    FailureRule(
        "nouveau-not-blocked",
        "",
        "nouveau, or its successor nova, is not blacklisted and may take the cards at the next boot",
        "Provision again: the driver role writes the blacklist and rebuilds the initramfs",
        "nvidia-installer misc.c; joanbm/nvidia-470xx-linux-mainline",
        sign=Sign("driver", nouveau_not_blocked, (OPEN_DRIVERS, NOUVEAU, KERNELS, DPKG), grave=False, provision=True),
    ),
    FailureRule(
        "kernel-not-held",
        "",
        "apt may upgrade the kernel: the new one has no module of this driver until it is built, if it builds at all",
        "Provision again: the base role holds the kernel's packages (apt-mark hold)",
        "GoogleCloudPlatform/compute-gpu-installation#18; apt-mark(8)",
        sign=Sign("base", not_held, (DPKG,), grave=False, provision=True),
    ),
    FailureRule(
        "driver-not-held",
        "",
        "the next upgrade may change a part of the driver: its libraries would not match the loaded module",
        "Provision again: the driver role holds every package of its set (apt-mark hold)",
        "ubuntu-server-documentation#369; apt-mark(8)",
        sign=Sign("driver", loose_driver, (DPKG, MOVING), grave=False, provision=True),
    ),
    FailureRule(
        "upgrades-not-fenced",
        "",
        "unattended-upgrades may upgrade driver, toolkit or kernel at any time",
        "Provision again: the base role adds them to Unattended-Upgrade::Package-Blacklist. If a later file in "
        "/etc/apt/apt.conf.d clears that list, remove that file",
        "shine-cluster#50; NVIDIA/nvidia-docker#804",
        sign=Sign("base", not_fenced, (UNATTENDED, DPKG), grave=False, provision=True),
    ),
    FailureRule(
        "reboots-by-itself",
        "",
        "the host reboots automatically, at a scheduled time or when a package requires it: running work is lost",
        "Set Unattended-Upgrade::Automatic-Reboot to false in the file that has it (grep -rn Automatic-Reboot "
        "/etc/apt/apt.conf.d), or cancel the scheduled shutdown (shutdown -c), and reboot the host when it is idle",
        "unattended-upgrades(8); Azure/batch-shipyard#174",
        sign=Sign("base", reboots, (UNATTENDED, DPKG, NEXT_BOOT), grave=False),
    ),
    FailureRule(
        "driver-not-pinned",
        "",
        "apt may install another driver besides the stack's, as a dependency",
        "Provision again: the driver role writes the pins",
        "shine-cluster#50; apt_preferences(5)",
        sign=Sign("driver", not_pinned, (DPKG,), grave=False, provision=True),
    ),
)
