"""Failures of a card's connections to the host and to other cards: presence, PCIe, NVLink, ACS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hostwright.failures import AuditContext, FailureRule, Hardware, Sign, Unread
from hostwright.resources import PCI, Probe, pci_devices
from hostwright.roles import Gpu, Pattern, sh_file
from hostwright.standard.roles.driver.failures.cards.lost import lost_gpus
from hostwright.standard.roles.driver.failures.cards.memory import card
from hostwright.standard.roles.driver.failures.cards.treatments import CYCLE
from hostwright.standard.roles.driver.failures.load import gpu_unsupported, init_failed
from hostwright.standard.roles.driver.gpus import smi
from hostwright.standard.roles.driver.states.fabric import FABRIC, Fabric, fabric_of
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids
from hostwright.standard.roles.driver.xids.events import slot

#: probe that prints PCI paths of cards, devices with ACS source validation, and whether the host is virtual
ACS = Probe(sh_file(__file__, "acs.sh"), root=True)  # lspci shows ACS bits only to root
#: pattern of an H100 (H800) PCIe or NVL. With all three bridges, 6 of 18 NVLinks are inactive
#: (Azure/azurehpc-health-checks#162).
_HOPPER_CARD = Pattern(r"\bH[18]00\b.*\b(?:PCIe|NVL)\b")
BRIDGED_LINKS = 12  #: number of NVLinks that a card with all three bridges uses

_DEVICE = Pattern(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def _width(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi reports fewer PCIe lanes in use than card and slot have."""
    for gpu in smi(ctx).gpus:
        if gpu.pcie_width and gpu.pcie_width_max and gpu.pcie_width < gpu.pcie_width_max:
            yield f"{card(gpu)}: PCIe x{gpu.pcie_width} of x{gpu.pcie_width_max}{_replays(gpu)}"


def _generation(ctx: AuditContext) -> Iterator[str]:
    """A busy card (state P0, not idle, with a process) uses an older PCIe generation than card and slot support."""
    for gpu in smi(ctx).gpus:
        low = gpu.pcie_generation and gpu.pcie_generation_max and gpu.pcie_generation < gpu.pcie_generation_max
        if low and _works(gpu):
            generations = f"{gpu.pcie_generation} of {gpu.pcie_generation_max}"
            yield f"{card(gpu)}: PCIe generation {generations} in {gpu.performance} under load{_replays(gpu)}"


def _works(gpu: Gpu) -> bool:
    return (
        gpu.performance == "P0"
        and "gpu_idle" not in gpu.slowdowns
        and any("C" in process.kind for process in gpu.processes)
    )


def _replays(gpu: Gpu) -> str:
    return f", {gpu.pcie_replays} replays" if gpu.pcie_replays else ""


def _nvlink_down(ctx: AuditContext) -> Iterator[str]:
    """The host has NVSwitches, and an NVLink of a card that is not in MIG mode is inactive."""
    if _switched(ctx):
        yield from (_links(gpu) for gpu in smi(ctx).gpus if _inactive(gpu) and not gpu.mig)


def _nvlink_partial(ctx: AuditContext) -> Iterator[str]:
    """The host has no NVSwitches, and a card that is not in MIG mode has both active and inactive NVLinks. An H100 PCIe
    or NVL with all its bridges has 12 of 18 active.
    """
    gpus = smi(ctx).gpus
    if any(gpu.links for gpu in gpus) and not _switched(ctx):
        yield from (_links(gpu) for gpu in gpus if 0 < len(gpu.links) - len(_inactive(gpu)) < _usable(gpu))


def _usable(gpu: Gpu) -> int:
    """Return the number of NVLinks that a healthy card uses; 0 in MIG mode.

    Source: Fabric Manager's user guide, "Interoperability With MIG".
    """
    if gpu.mig:
        return 0
    return min(BRIDGED_LINKS, len(gpu.links)) if _HOPPER_CARD.search(gpu.model) else len(gpu.links)


def _inactive(gpu: Gpu) -> list[str]:
    return [str(link.number) for link in gpu.links if not link.active]


def _links(gpu: Gpu) -> str:
    dead = _inactive(gpu)
    return f"{card(gpu)}: {len(dead)} of {len(gpu.links)} NVLinks inactive: {', '.join(dead)}"


def _missing(ctx: AuditContext) -> Iterator[str]:
    """nvidia-smi lists fewer cards than the PCI bus has NVIDIA GPUs. Lost, failed and unsupported cards do not
    count.
    """
    bus, cards = len(_gpus_on_bus(ctx)), smi(ctx).gpus
    lost, failed = len(lost_gpus(ctx)), len(_told_by(init_failed, ctx))
    if len(cards) + lost + failed < bus and not _told_by(gpu_unsupported, ctx):
        off = f", {lost} fell off the bus" if lost else ""
        dead = f", {failed} could not be started" if failed else ""
        known = ", ".join(card(gpu) for gpu in cards) or "none"
        here = {slot(gpu.bus) for gpu in cards}
        silent = [address for address in _told_by(_slots, ctx) if slot(address) not in here]
        without = f" without {', '.join(silent)}" if silent else ""
        yield f"{bus} NVIDIA GPUs on the PCI bus, {len(cards)} in nvidia-smi{without}{off}{dead}; it lists {known}"
        slots = set(map(slot, silent))
        yield from (f"not in nvidia-smi: {one.name}" for one in ctx.known.missing(cards) if slot(one.bus) in slots)


def _slots(ctx: AuditContext) -> Iterator[str]:
    for line in ctx.text(ACS).split("\n"):
        kind, _, path = line.strip().partition(" ")
        if kind == "gpu" and (found := [match[0] for match in _DEVICE.finditer(path.lower())]):
            yield found[-1]


def _told_by(other: Callable[[AuditContext], Iterable[str]], ctx: AuditContext) -> tuple[str, ...]:
    """Return the findings of ``other``, a function of another rule; empty if ``other`` raises ``Unread``."""
    try:
        return tuple(other(ctx))
    except Unread:
        return ()


def _none(ctx: AuditContext) -> Iterator[str]:
    """The host needs the driver, and its PCI bus has no NVIDIA GPU."""
    if _driver_wanted(ctx) and not _gpus_on_bus(ctx):
        yield "0 NVIDIA GPUs on the PCI bus"
        yield from _gone(ctx)


def _driver_wanted(ctx: AuditContext) -> bool:
    return "driver" in ctx.changes or any("driver" in role.provides for role in ctx.desired.roles)


def _fewer(ctx: AuditContext) -> Iterator[str]:
    """The PCI bus has fewer NVIDIA GPUs than the inventory (``hostwright_gpus``). If the bus has none and a role
    installs the driver, another rule applies.
    """
    on_bus, declared = len(_gpus_on_bus(ctx)), ctx.known.gpus
    if declared is not None and on_bus < declared and (on_bus or not _driver_wanted(ctx)):
        yield f"{on_bus} of the {declared} GPUs of the inventory (hostwright_gpus) are on the PCI bus"
        if slots := _told_by(_slots, ctx):
            yield f"on the bus: {', '.join(slots)}"
        yield from _gone(ctx)


def _fewer_than_before(ctx: AuditContext) -> Iterator[str]:
    """The PCI bus has NVIDIA GPUs, but fewer than an audit of the last 30 days found, and the inventory does not set
    their number.
    """
    on_bus, most = len(_gpus_on_bus(ctx)), ctx.known.most_gpus
    if ctx.known.gpus is None and 0 < on_bus < most:
        yield f"{on_bus} NVIDIA GPUs on the PCI bus, {most} before"
        yield from _gone(ctx)


def _gone(ctx: AuditContext) -> Iterator[str]:
    try:
        present = smi(ctx).gpus if _gpus_on_bus(ctx) else ()
    except Unread:
        return
    yield from (f"gone since an earlier audit: card at {one.name}" for one in ctx.known.missing(present))


def _less(ctx: AuditContext) -> Iterator[str]:
    """For a card, nvidia-smi reports less memory, fewer active NVLinks, or a narrower or slower PCIe slot than in
    audits of the last 30 days.
    """
    for gpu in smi(ctx).gpus:
        yield from (f"{card(gpu)}: {less}" for less in ctx.known.less(gpu))


def _replaced(ctx: AuditContext) -> Iterator[str]:
    """A slot has a card with another serial number or UUID than in audits of the last 30 days (nvidia-smi), and the
    earlier card is in no other slot.
    """
    yield from (f"card at {replaced}" for replaced in ctx.known.replaced(smi(ctx).gpus))


def _acs(ctx: AuditContext) -> Iterator[str]:
    """``lspci -vvv`` shows ACS source validation (``ACSCtl: SrcValid+``) on a PCI bridge above a card, on a physical
    host with two cards or more.
    """
    paths: list[str] = []
    checking: set[str] = set()
    for line in ctx.text(ACS).split("\n"):
        kind, _, value = line.strip().partition(" ")
        if kind == "gpu":
            paths.append(value)
        elif kind == "acs":
            checking.add(value)
    if len(paths) > 1:
        above = {address[0] for path in paths for address in _DEVICE.finditer(path.lower())}
        yield from (f"{address}: ACSCtl: SrcValid+, above an NVIDIA GPU" for address in sorted(above & checking))


def _gpus_on_bus(ctx: AuditContext) -> tuple[int, ...]:
    _read_bus(ctx)
    return gpu_ids(ctx.facts)


def _switched(ctx: AuditContext) -> bool:
    _read_bus(ctx)
    ctx.require(FABRIC)
    return fabric_of(ctx.facts) is not Fabric.NONE


def _read_bus(ctx: AuditContext) -> None:
    """Raise ``Unread`` if a line of the PCI device list was not parsed, because a skipped card would count as lost."""
    lines = [line for line in ctx.text(PCI).split("\n") if line]
    if ctx.answer(PCI).truncated or len(pci_devices(ctx.facts)) != len(lines):
        raise Unread("the list of PCI devices cannot be read")


COUNT = "Azure/azurehpc-health-checks azure_gpu_count.nhc"
SEAT = "Drain the host, switch it off, and seat the card (and its riser or cable) again"

LINKS = (
    FailureRule(
        "no-gpu",
        "",
        "the PCI bus has no NVIDIA GPU",
        f"{SEAT}; check its power, the firmware's settings for the slot, and whether it is the right host",
        "the role driver refuses such a host",
        sign=Sign("gpu", _none),
        treatment=Hardware("hand over", COUNT, tries=0),
    ),
    FailureRule(
        "gpus-fewer",
        "",
        "the host has fewer GPUs than the inventory",
        f"{SEAT}; check its power, the BMC's event log, and dmesg for the slot. If the card was removed for good, "
        "correct hostwright_gpus in the inventory",
        COUNT,
        sign=Sign("gpu", _fewer),
        treatment=Hardware("hand over", COUNT, tries=0),
    ),
    FailureRule(
        "gpus-fewer-than-before",
        "",
        "the host has fewer GPUs than at an earlier audit",
        f"{SEAT}; check its power, the BMC's event log, and dmesg for the slot. If the card was removed for good, set "
        "hostwright_gpus in the inventory",
        COUNT,
        sign=Sign("gpu", _fewer_than_before, grave=False),
    ),
    FailureRule(
        "gpu-replaced",
        "",
        "a card was replaced: its slot has another card than at an earlier audit",
        "Record the new serial number and UUID where cards are listed (repair order, device filters, jobs with a "
        "UUID). If no replacement was planned, find out who did it. This is reported for 30 days",
        "nvidia-smi's manual, serial and GPU UUID",
        sign=Sign("gpu", _replaced, grave=False),
    ),
    FailureRule(
        "gpu-less-than-before",
        "",
        "a card has less than at an earlier audit: memory, NVLinks, or PCIe lanes and speed of its slot",
        f"Check its Xids and the firmware's settings for the slot; {SEAT[0].lower()}{SEAT[1:]}, with its NVLink "
        "bridges. A lasting change is reported for 30 days",
        "nvidia-smi's manual, PCIe max link width; Azure/azurehpc-health-checks azure_hw_topology_check.nhc",
        sign=Sign("gpu", _less, grave=False),
    ),
    FailureRule(
        "gpu-missing",
        "",
        "the driver does not start a card that is on the PCI bus",
        "Run dmesg | grep -e NVRM -e nvidia for messages about that card, and lspci -nnk -d 10de: for its current "
        "driver; drain the host and cycle its power. If the card stays missing, have it replaced",
        "Azure/azurehpc-health-checks azure_gpu_count.nhc; facebookresearch/gcm check-nvidia-smi",
        sign=Sign("gpu", _missing),
        treatment=Hardware("power cycle", CYCLE, tries=1, layer="driver"),
    ),
    FailureRule(
        "pcie-width",
        "",
        "a card uses fewer PCIe lanes than it and its slot have, so data reaches it more slowly",
        f"Check again under load: an idle card may save power. If it persists: {SEAT[0].lower()}{SEAT[1:]}; another "
        "slot shows whether card or slot is defective",
        "nvidia-smi's manual, PCIe link width; Azure/azurehpc-health-checks azure_hw_topology_check.nhc",
        sign=Sign("gpu", _width, grave=False),
    ),
    FailureRule(
        "pcie-generation",
        "",
        "a card under load uses an older PCIe generation than it and its slot support, so data reaches it more slowly",
        f"Check the slot's speed in the firmware's settings, and the replays; {SEAT[0].lower()}{SEAT[1:]}",
        "NVML link generations",
        sign=Sign("gpu", _generation, grave=False),
    ),
    FailureRule(
        "nvlink-down",
        "",
        "an NVLink between a card and an NVSwitch is down: CUDA or NCCL fails, or is very slow",
        "Check the journal of nvidia-fabricmanager and the kernel log for Xid 74; drain the host, reset all cards or "
        "cycle the power. If it persists, have the board checked",
        "Azure/azurehpc-health-checks azure_gpu_nvlink.nhc",
        sign=Sign("gpu", _nvlink_down, (FABRIC,)),
        treatment=Hardware("power cycle", CYCLE, tries=1),
    ),
    FailureRule(
        "nvlink-partial",
        "",
        "some NVLinks of a card are inactive and others active: a bridge is loose, missing or broken",
        "Search the kernel log for Xid 74; drain the host, switch it off, and seat the NVLink bridges again",
        "Azure/azurehpc-health-checks azure_gpu_nvlink.nhc",
        sign=Sign("gpu", _nvlink_partial, (FABRIC,), grave=False),
    ),
    FailureRule(
        "acs-on",
        r"(?:all_reduce_perf|\bNCCL)[^\n]*\n(?:[^\n]*\n){0,60}?[^\n]*ACSCtl:\s{0,9}SrcValid\+",
        "PCI bridges above the cards route transfers between cards through the processor (ACS), which makes NCCL "
        "slow or lets it hang",
        "Switch ACS (and an unneeded IOMMU) off in the firmware's settings, or for this boot with setpci -s BRIDGE "
        "ECAP_ACS+6.w=0000. Until then, NCCL_P2P_DISABLE=1 makes NCCL avoid these transfers",
        "NVIDIA/nccl#606, #257, #2079; leptonai/gpud pci",
        sign=Sign("gpu", _acs, probes=(ACS,), grave=False),
    ),
)
