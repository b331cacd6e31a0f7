"""Signs that the driver's module is built but not loaded, or that the loaded module does not support a card."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Hardware, Sign, Stuck, Unread, Variant
from hostwright.resources import DPKG, HOST_PROBES, KERNEL_GONE, PCI, Probe
from hostwright.roles import Pattern, sh_file
from hostwright.standard.roles.driver.failures.cards.lost import lost_gpus
from hostwright.standard.roles.driver.failures.cards.treatments import CYCLE, NO_POWER
from hostwright.standard.roles.driver.failures.logs import LOG_PROBES, log_cause
from hostwright.standard.roles.driver.failures.state import (
    BOOTED,
    driver_of,
    matching,
    ours,
    running_kernel,
    said_since_boot,
    unfit,
)
from hostwright.standard.roles.driver.gpus import kernel_log, smi
from hostwright.standard.roles.driver.nvsmi.fields import LOST
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.device_files import DEVICES, device_flaws
from hostwright.standard.roles.driver.states.gpu_use import SECURE_BOOT, gpu_ids, unsigned_refused
from hostwright.standard.roles.driver.states.modprobe import (
    MODPROBE,
    at_this_boot,
    excluded,
    forbidding,
    private_devices,
)
from hostwright.standard.roles.driver.states.nouveau import NOUVEAU, NouveauGone
from hostwright.standard.roles.driver.xids.events import slot

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

FIRMWARE = Probe(sh_file(__file__, "firmware.sh"))

NO_PROGRAM = 127  #: exit status of a probe's shell for a missing program

#: pattern of the kernel's message about an untrusted module signature (kernel/module/signing.c, security/lockdown)
_REFUSED = (
    r"Loading of unsigned module is rejected|Loading of module with (unavailable key|unsupported crypto) is rejected"
    r"|unsigned module loading is restricted|PKCS#7 signature not signed with a trusted key"
)
#: pattern of nvidia.ko's message about a host without a supported card (nv.c)
_NO_DEVICE = (
    r"NVRM: No NVIDIA (graphics adapter|GPU|devices?) (found|probed)|NVRM: The NVIDIA probe routine (failed|was not"
    r" called)|NVRM: None of the NVIDIA (devices|graphics adapters) were"
)
_ADDRESS = r"([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)"
_UNSUPPORTED_CARD = Pattern(f"NVRM: The NVIDIA GPU {_ADDRESS}")
#: pattern of the kernel log line that names the driver branch, or the kind of module, that a card needs
_NEEDS_ANOTHER = Pattern(
    r"NVRM: {1,4}((?:installed in this system )?(?:is not supported by|requires use of|is supported through).*)"
)
_PCI_ID = Pattern(r"\(PCI ID: 10de:([0-9a-fA-F]{4})\)")
_NO_DEVICES = "No devices were found"
_INIT = Pattern(f"NVRM: GPU (?:at )?(?:PCI:)?{_ADDRESS}.*RmInitAdapter failed")
LOAD_PROBES = (NOUVEAU, SECURE_BOOT, NVIDIA_SMI, BOOTED, PCI, DPKG, KERNEL_GONE, *HOST_PROBES)


def nouveau_in_use(ctx: AuditContext) -> Iterator[str]:
    """An NVIDIA card's driver in ``/sys/bus/pci`` is nouveau or nova."""
    ctx.require(NOUVEAU)
    change = NouveauGone().plan(ctx.facts)
    if change is not None:
        yield from change.have.split(", ")


def not_signed(ctx: AuditContext) -> Iterator[str]:
    """The module is not loaded, Secure Boot is on and no key of DKMS is enrolled; or, since the boot, the kernel log
    reports a module rejected for its signature.
    """
    if driver_of(ctx).loaded:
        return
    ctx.require(SECURE_BOOT)
    if unsigned_refused(ctx.facts):
        yield "Secure Boot is on, and no key with which DKMS signs modules is enrolled"
    if driver_of(ctx).module:
        yield from said_since_boot(ctx, _REFUSED)[-1:]


def gpu_unsupported(ctx: AuditContext) -> Iterator[str]:
    """This driver branch does not support a card's architecture (by its PCI id); or, since the boot, the kernel log
    reports that the driver does not support a card, and nvidia-smi lists no card of that model.
    """
    if reasons := unfit(ctx, "gpu-driver"):
        yield from reasons
        return
    named = said_since_boot(ctx, _UNSUPPORTED_CARD.pattern)
    needs = [match[1] for line in kernel_log(ctx) if named and (match := _NEEDS_ANOTHER.match(line.text))]
    if needs:
        silent = _of_silent_cards(ctx, named, _UNSUPPORTED_CARD)
        yield from (f"{line} {needs[-1]}" for line in silent.values() if not _another_works(ctx, line))


def _another_works(ctx: AuditContext, line: str) -> bool:
    """Return whether nvidia-smi lists a card of the same model as the card in the log line ``line``.

    In this case, the logged card is faulty, not unsupported (NVIDIA/aicr#1858).
    """
    match = _PCI_ID.search(line)
    others = [device for device in gpu_ids(ctx.facts) if not match or device != int(match[1], 16)]
    return _listed(ctx) > len(others)


def init_failed(ctx: AuditContext) -> Iterator[str]:
    """The kernel log since the last load of the module has ``RmInitAdapter failed`` for a card that nvidia-smi does not
    list and that is not lost.
    """
    if lines := _of_silent_cards(ctx, matching(ctx, _INIT.pattern), _INIT):
        lost = lost_gpus(ctx)
        yield from (line for bus, line in lines.items() if bus not in lost)


def firmware_missing(ctx: AuditContext) -> Iterator[str]:
    """The module on disk is the open module, and a GSP firmware file that it names (modinfo -F firmware) is in no
    directory that the kernel searches.
    """
    yield from (f"/lib/firmware/{file} is not there" for file in ctx.text(FIRMWARE).splitlines() if file)


def no_device(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports "No devices were found", or the module is not loaded and the kernel log reports since the boot
    that it found no card. Neither nouveau, an unsupported model nor a lost card explains it.
    """
    state = ours(ctx)
    if state is None or not state.module or _explained(ctx):
        return
    if not state.loaded:
        yield from said_since_boot(ctx, _NO_DEVICE)[-1:]
    elif _NO_DEVICES in ctx.answer(NVIDIA_SMI).text and not said_since_boot(ctx, _INIT.pattern) and not _lost(ctx):
        yield f"nvidia-smi: {_NO_DEVICES}"


def not_loaded(ctx: AuditContext) -> Iterator[str]:
    """modinfo finds the module for the running kernel, ``/sys/module/nvidia`` does not exist, and neither nouveau,
    Secure Boot, the cards, ``modprobe.d`` nor the layer's newest log explains it.
    """
    state = ours(ctx)
    if state is None or not state.module or state.loaded or _explained(ctx):
        return
    if any(not_signed(ctx)) or any(no_device(ctx)) or log_cause(ctx)[0] == "module-loading-off":
        return
    if forbidding(ctx.text(MODPROBE), renamed=ctx.section(DriverSection).renamed) or at_this_boot(ctx.text(MODPROBE)):
        return
    yield f"module {state.module} for {running_kernel(ctx)} is not loaded"
    yield from said_since_boot(ctx, r"NVRM|\bnvidia: ")[-1:]


def devices_private(ctx: AuditContext) -> Iterator[str]:
    """``options nvidia NVreg_DeviceFileMode=`` in a file of ``modprobe.d`` sets a mode without access for all users."""
    if ours(ctx) is not None:
        yield from private_devices(ctx.text(MODPROBE))


def cards_excluded(ctx: AuditContext) -> Iterator[str]:
    """``options nvidia NVreg_ExcludedGpus=`` (or ``NVreg_AssignGpus=``) in a file of ``modprobe.d`` names cards."""
    if ours(ctx) is not None:
        yield from excluded(ctx.text(MODPROBE))


def uvm_not_loaded(ctx: AuditContext) -> Iterator[str]:
    """``/sys/module/nvidia`` exists, and ``/sys/module/nvidia_uvm`` does not."""
    state = ours(ctx)
    if state is not None and state.loaded and not state.uvm and state.module in {"", state.loaded}:
        yield f"nvidia {state.loaded} is loaded, nvidia-uvm is not"


def devices_missing(ctx: AuditContext) -> Iterator[str]:
    """The module is loaded, nvidia-smi has just run, and a device file of the driver is missing, or its number or mode
    differs from the module's setting. The files are ``/dev/nvidiactl``, ``/dev/nvidia-uvm``, ``/dev/nvidia-uvm-tools``,
    ``/dev/nvidia-modeset``, and those of cards and GPU instances.
    """
    ctx.require(DEVICES)
    if ours(ctx) is not None and ctx.answer(NVIDIA_SMI).status != NO_PROGRAM and not _explained(ctx):
        yield from device_flaws(ctx.facts)


def _explained(ctx: AuditContext) -> bool:
    if ctx.text(NOUVEAU).strip() or not _cards(ctx):
        return True
    try:
        return any(gpu_unsupported(ctx))
    except Unread:
        return False


def _cards(ctx: AuditContext) -> int:
    ctx.require(PCI)
    return len(gpu_ids(ctx.facts))


def _listed(ctx: AuditContext) -> int:
    try:
        return len(smi(ctx).gpus)
    except Unread:
        return 0


def _lost(ctx: AuditContext) -> bool:
    try:
        return bool(lost_gpus(ctx))
    except Unread:
        return False


def _of_silent_cards(ctx: AuditContext, lines: tuple[str, ...], pattern: Pattern) -> dict[str, str]:
    try:
        here = {slot(gpu.bus) for gpu in smi(ctx).gpus if gpu.fault != LOST}
    except Unread:
        here = set()
    by_bus = {slot(match[1]): line for line in lines if (match := pattern.search(line))}
    return {bus: line for bus, line in by_bus.items() if bus and bus not in here}


NOUVEAU_SIGN = Sign("driver", nouveau_in_use, (NOUVEAU,), provision=True)
NOT_SIGNED_SIGN = Sign("driver", not_signed, (SECURE_BOOT, BOOTED))
GPU_UNSUPPORTED_SIGN = Sign("driver", gpu_unsupported, (*HOST_PROBES, NVIDIA_SMI, BOOTED))
FIRMWARE_SIGN = Sign("driver", firmware_missing, (FIRMWARE,))
NO_DEVICE_SIGN = Sign("driver", no_device, LOAD_PROBES)

LOAD_RULES = (
    FailureRule(
        "module-not-loaded",
        "",
        "the driver's module exists for the running kernel and is not loaded",
        "Provision again: the driver role loads the module. If it does not stay loaded, run dmesg | grep NVRM on "
        "the host",
        "nvidia-installer kernel.c; modules-load.d(5)",
        sign=Sign("driver", not_loaded, (*LOAD_PROBES, *LOG_PROBES, MODPROBE), provision=True),
    ),
    FailureRule(
        "uvm-not-loaded",
        r"Module '?nvidia[-_](?:\w{1,20}[-_])?uvm'? not found|by name='nvidia[-_](?:\w{1,20}[-_])?uvm'"
        r"|insert (?:module )?'?nvidia[-_](?:\w{1,20}[-_])?uvm'?: "
        r"|/dev/nvidia-uvm(?:-tools)?[\"'`\\]{0,6}:? (?:failed: )?\(?(?:[0-9]{1,2}: )?(?:no such file|does not exist)",
        "the module nvidia-uvm is not loaded, or its device files are missing. Without them no CUDA program starts, "
        "although nvidia-smi works",
        "Provision again: the driver role loads the module (modprobe nvidia-uvm) and creates its device files "
        "(nvidia-modprobe -u -c 0)",
        "NVIDIA's CUDA installation guide for Linux, device node verification",
        sign=Sign("driver", uvm_not_loaded, (DPKG,), provision=True),
    ),
    FailureRule(
        "device-files-missing",
        r"could not create kernel module device node|/dev/nvidia(?:ctl|-modeset"
        r"|[0-9]{1,2})[\"'`\\]{0,6}:? (?:failed: )?\(?(?:[0-9]{1,2}: )?"
        r"(?:no such (?:file or directory|device)|does not exist)|(?:failed to|cannot|could not) (?:open"
        r"|stat) (?:device )?"
        r"[\"'`\\]{0,6}/dev/nvidia(?:ctl|-uvm|[0-9])\S{0,8} \(?no such|open of non-existent GPU with minor",
        "device files of the driver are missing in /dev{ (FILE)|}, or differ from those of the loaded module, so "
        "programs or containers cannot use a GPU",
        "Provision again: the driver role creates them. By hand, as root: nvidia-modprobe -c 255 -c 0 (-c N for each "
        "card); for nvidia-uvm and nvidia-uvm-tools, nvidia-modprobe -u -c 0; for nvidia-modeset, nvidia-modprobe "
        "-m; if nvidia-modprobe is not setuid, chmod u+s /usr/bin/nvidia-modprobe",
        "NVIDIA's CUDA installation guide for Linux, device node verification; nvidia-modprobe(1)",
        names=(r"(?P<file>/dev/nvidia[\w-]{1,20})[\"'`\\]{0,6}:? [^\n]{0,20}(?:[Nn]o such|does not exist)",),
        sign=Sign("driver", devices_missing, (DEVICES, *LOAD_PROBES), provision=True),
        treatment=Stuck("the driver's device files are missing"),
    ),
    FailureRule(
        "device-files-private",
        "",
        "an option of the nvidia module restricts the cards' device files to root and a group, so other accounts and "
        "containers cannot use a GPU",
        "If all accounts need the cards, remove NVreg_DeviceFileMode from the file that the evidence names, run "
        "update-initramfs -u, and reboot or reload the module",
        "NVIDIA driver README, NVreg_DeviceFileMode",
        sign=Sign("driver", devices_private, (MODPROBE, DPKG)),
        treatment=ForPeople(),
    ),
    FailureRule(
        "cards-excluded",
        "",
        "an option of the nvidia module excludes cards from the driver, so no program finds them",
        "If the host needs all its cards, remove NVreg_ExcludedGpus (or NVreg_AssignGpus) from the file that the "
        "evidence names, run update-initramfs -u -k all, and reboot or reload the module",
        "NVIDIA driver README, NVreg_ExcludedGpus",
        sign=Sign("driver", cards_excluded, (MODPROBE, DPKG), grave=False),
    ),
    FailureRule(
        "gpu-init-failed",
        r"Cannot initialize GSP firmware|failed to wait for GFW.?(?:BOOT|boot)|[Ff]ailed to copy vbios"
        r"|unexpected WPR2 already up|RmInitAdapter failed! \(0x6[123]:|GSP-FMC reported an error"
        r"|Booter failed with non-zero error|prepare interface data for FWSEC"
        r"|kgsp(?:Bootstrap|ExecuteFwsec)\w*: [^\n]*(?:error|fail)|kfsp\w+: FSP [^\n]*(?:error|timed out)"
        r"|kfsp\w+ failed|kfsp\w+: [^\n]*fail",
        "the driver cannot start {the card CARD|a card}: the card hangs since the last reset, has no power, has no "
        "address space for its memory regions (BARs; Above 4G Decoding off in the BIOS, or incomplete passthrough by "
        "a hypervisor), needs another driver or kind of module, or is defective",
        "Check the preceding NVRM lines (dmesg | grep -iE 'NVRM|BAR'). If one reports that the card requires the "
        "open module or is not supported, change driver.module or the driver release in the stack. Otherwise drain "
        "the host and cycle its power; then turn on Above 4G Decoding and Resizable BAR in the BIOS (in a virtual "
        "machine: UEFI and a large 64-bit MMIO window), and check the card's seat and power. If it follows the card, "
        "have the card replaced",
        "nvidia.ko, RmInitAdapter and kernel_gsp.c; NVIDIA/open-gpu-kernel-modules#1230, #876",
        beside=r"Xid [^\n]+\): 169,|VBIOS image from ROM"
        r"|WPR2 already up|Cannot initialize GSP|GSP task exception|GSP_INIT_DONE|RmInitAdapter failed! \(",
        names=(r"GPU (?:at )?(?:PCI:)?(?P<card>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)",),
        variants=(
            # RM_INIT_FIRMWARE_FETCH_FAILED is 0x61. RM_INIT_FIRMWARE_INIT_FAILED is 0x62 or 0x63, depending on the
            # driver branch.
            Variant(
                r"RmInitAdapter failed! \(0x61:",
                "the driver cannot start {the card CARD|a card}: the firmware of its own release for the card's "
                "system processor (GSP) is missing",
                "Check /lib/firmware/nvidia for a directory of the driver's version; provision again, which installs "
                "that version's files. If the initramfs contains the module, rebuild it (update-initramfs -u -k all)",
            ),
            Variant(
                r"Xid [^\n]+\): 169,",
                "the driver cannot start {the card CARD|a card}, whose security controller stops (Xid 169): usually "
                "the proprietary kernel module is loaded for a card that needs the open one (Blackwell and later, "
                "GB10)",
                "Run modinfo -F license nvidia: NVIDIA is the proprietary module, Dual MIT/GPL the open one. Set "
                "driver.module: open in the stack, or remove the setting (auto selects the right one), and provision "
                "again; for packages, name the set with -open at the same version, then reboot. If it is already the "
                "open one, cycle the host's power and try another driver release",
            ),
            Variant(
                r"Booter failed|FWSEC",
                "the driver cannot start {the card CARD|a card}: the firmware of its system processor (GSP) does not "
                "boot, which is the first error. The messages that WPR2 is already up, and that the card may need a "
                "reset, only follow from it. Usually this driver release has a bug with this card or its VBIOS",
                "Name another driver release in the stack, the previous or a newer one (595.58.03 has such a bug, "
                "595.45.04 does not), and reset the card or cycle the host's power before it loads. Before "
                "Blackwell, the proprietary module works without this firmware (NVreg_EnableGpuFirmware=0). If no "
                "release starts the card, update its VBIOS, then have the card checked",
            ),
            Variant(
                r"VBIOS image from ROM|valid ROM signature",
                "the driver cannot start {the card CARD|a card}: it does not find the card's VBIOS, which it needs "
                "to start the card's system processor (GSP). The card responds only partly",
                "Drain the host and cycle its power; then check the card's seat and power. In a virtual machine, let "
                "the hypervisor reset the card and pass it through again. If it follows the card, have the card "
                "replaced",
            ),
            Variant(
                r"GSP|FSP|WPR2|RmInitAdapter failed! \(0x6[23]:",
                "the driver cannot start {the card CARD|a card}: its system processor (GSP) does not start, because "
                "its firmware, which is part of the driver, or the card hangs. If WPR2 is already up, an earlier "
                "attempt failed, and every further one fails until the card is reset",
                "Drain the host and reset that card (nvidia-smi --gpu-reset -i N), or cycle the host's power. Then "
                "check the card's first GSP line since the boot (journalctl -k | grep -E 'GSP|Xid'), not the "
                "repeats. If it recurs, name another driver release in the stack, the previous or a newer one. If it "
                "follows the card, have the card checked",
            ),
        ),
        narrower=NO_POWER,
        closing=r"RmInitAdapter failed|rm_init_adapter failed|failed, bailing out of RmInitAdapter|Cannot attach gpu"
        r"|Failed to initialize the NVIDIA GPU at|rm_init_private_state\(\) failed|module->open\(\) failed",
        sign=Sign("gpu", init_failed, (BOOTED, NVIDIA_SMI)),
        treatment=Hardware("power cycle", CYCLE, tries=1, layer="driver"),
    ),
)
