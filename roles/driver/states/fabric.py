"""NVLink switches between GPUs, on the board or in a rack, and the software for each kind of connection.

Sources: NVIDIA/gpu-driver-container, nvidia-driver of ubuntu22.04 (detection of an NVLink 5 board);
siderolabs/extensions pull requests 717 and 893; Azure/azhpc-images and leptonai/gpud (racks); the README of
open-gpu-kernel-modules (chips).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from hostwright.resources import (
    HOST_PROBES,
    PCI,
    Change,
    Condition,
    DebFile,
    Debs,
    Facts,
    File,
    Planned,
    Probe,
    Refusal,
    Resource,
    RestartedAfter,
    Service,
    Step,
    When,
    pci_devices,
    read_host,
)
from hostwright.roles import Pattern, RoleContext, Stack, sh_file, words
from hostwright.standard.roles.driver.chips import RACK_CARDS
from hostwright.standard.roles.driver.section import DriverPart, DriverSection, FabricManager
from hostwright.standard.roles.driver.states.gpu_use import NVIDIA, gpu_ids
from hostwright.standard.roles.driver.states.runfile import Loadable, WithDriver

FABRIC_MANAGER = "nvidia-fabricmanager.service"
IMEX = "nvidia-imex.service"

_FIRST_BLACKWELL = "0x2900"

#: names of kernel modules for the ConnectX bridges of an NVLink 5 board. The subnet manager sends through ``ib_umad``.
BRIDGE_MODULES = ("mlx5_core", "mlx5_ib", "ib_umad")
BRIDGES_AT_BOOT = "/etc/modules-load.d/hostwright-fabric.conf"
CHANNEL_OPTION = "/etc/modprobe.d/hostwright-imex.conf"
NODES = "/etc/nvidia-imex/nodes_config.cfg"
CHANNEL = "/dev/nvidia-caps-imex-channels/channel0"

#: probe that prints NVSwitches, ConnectX bridges of an NVLink 5 board, and missing modules (format: fabric.sh). A
#: bridge's product data identifies such a board.
FABRIC = Probe(sh_file(__file__, "fabric.sh", first=_FIRST_BLACKWELL, modules=BRIDGE_MODULES), root=True, shared=True)
_ROW = Pattern(r"(?:nvswitch|bridge) [0-9A-Za-z:.]{1,16}")


class Fabric(StrEnum):
    """Kind of NVLink connection between the GPUs of a host."""

    NONE = "none"  #: no NVLink connection, or only bridges between pairs of GPUs
    SWITCHES = "switches"  #: NVSwitches on the host's PCI bus
    NVLINK5 = "nvlink5"  #: NVLink 5 switches behind ConnectX bridges
    RACK = "rack"  #: NVLink switches of a rack, which are managed outside the host


#: kinds of GPU connection that Fabric Manager configures
MANAGED = (Fabric.SWITCHES, Fabric.NVLINK5)


def nvswitches(facts: Facts) -> int:
    """Return the number of NVSwitches: NVIDIA's bridge devices of class 0x0680 on the PCI bus."""
    return sum(1 for device in pci_devices(facts) if device.vendor == NVIDIA and device.kind >> 8 == 0x0680)


def fabric_of(facts: Facts) -> Fabric:
    """Return the kind of connection between the host's GPUs. Requires the probes ``PCI`` and ``FABRIC``."""
    found = {line.partition(" ")[0] for line in facts[FABRIC].text.splitlines() if _ROW.fullmatch(line)}
    if RACK_CARDS.intersection(gpu_ids(facts)):
        return Fabric.RACK
    if "bridge" in found:
        return Fabric.NVLINK5
    return Fabric.SWITCHES if nvswitches(facts) or "nvswitch" in found else Fabric.NONE


def _lines(kind: str, facts: Facts) -> tuple[str, ...]:
    lines = facts[FABRIC].text.splitlines()
    return tuple(name for name in BRIDGE_MODULES if f"{kind} {name}" in lines)


def modules_lacking(facts: Facts) -> tuple[str, ...]:
    """Return the kernel modules for an NVLink 5 board that are not loaded. Requires the probe ``FABRIC``."""
    return _lines("lacks", facts)


@dataclass(frozen=True, slots=True)
class JoinedBy(Condition):
    """Condition that the connection between the host's GPUs is of the kind ``fabric``."""

    fabric: Fabric

    def probes(self) -> tuple[Probe, ...]:
        return (PCI, FABRIC)

    def holds(self, facts: Facts) -> bool:
        return fabric_of(facts) is self.fabric


@dataclass(frozen=True, slots=True)
class HasNvSwitch(Condition):
    """Condition that the host has NVSwitches for Fabric Manager to configure."""

    def probes(self) -> tuple[Probe, ...]:
        return (PCI, FABRIC)

    def holds(self, facts: Facts) -> bool:
        return fabric_of(facts) in MANAGED


@dataclass(frozen=True, slots=True)
class BridgeModules(Resource):
    """The kernel modules for the ConnectX bridges of an NVLink 5 board are loaded.

    On Ubuntu, a missing module is installed with the running kernel's ``linux-modules-extra``.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (FABRIC, *HOST_PROBES, *Debs(()).probes())

    def plan(self, facts: Facts) -> Planned | None:
        lacking = modules_lacking(facts)
        if not lacking:
            return None
        load = Step(f'for module in {words(BRIDGE_MODULES)}; do modprobe "$module"; done')
        what, have = "modules of the NVLink bridges", f"{', '.join(lacking)} not loaded"
        host = read_host(facts)
        if _lines("missing", facts) and host.distribution == "ubuntu":
            extra = Debs((f"linux-modules-extra-{host.kernel}",), hold=True).plan(facts)
            if isinstance(extra, Change):
                return replace(extra, steps=(*extra.steps, load))
        return Change(what, have, "loaded", (load,))

    def removal(self) -> tuple[Resource, ...]:
        # Other programs may use the ConnectX devices, so the modules stay loaded.
        return ()


@dataclass(frozen=True, slots=True)
class SubnetManagerNamed(Resource):
    """The stack names a subnet manager, without which CUDA fails on an NVLink 5 board.

    Always refuses the host, because the role yields this resource only for a stack without a subnet manager.
    """

    driver: str

    def probes(self) -> tuple[Probe, ...]:
        return ()

    def plan(self, _facts: Facts) -> Refusal:
        sentence = (
            "the host has an NVLink 5 board (HGX B200 or B300), but the stack has no NVLink subnet manager; "
            "choose a stack with driver.fabric_manager.subnet_manager (package nvlsm), such as hgx-b200, or "
            f"add it for driver {self.driver}"
        )
        return Refusal("NVLink subnet manager", "none in the stack", "nvlsm", "subnet-manager", sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class ImexChannel(Resource):
    """Device file of the first IMEX channel, through which the nodes of a rack share GPU memory.

    The loaded driver creates the file, but only with the option ``NVreg_CreateImexChannel0``.
    """

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(f"[ -c {CHANNEL} ]"),)

    def plan(self, facts: Facts) -> Change | None:
        if facts[self.probes()[0]].ok:
            return None
        step = Step(sh_file(__file__, "sh/channel.sh", channel=CHANNEL))
        return Change("IMEX channel", "no channel0", CHANNEL, (step,))

    def removal(self) -> tuple[Resource, ...]:
        return ()  # unloading the driver's module removes the device file


def before_the_driver(wanted: DriverSection) -> Iterator[Resource]:
    """Yield the files of module options that must exist before the module is loaded."""
    if wanted.imex:
        text = "# Written by Hostwright. Programs that share memory with other nodes of the rack open channel 0.\n"
        option = f"{text}options nvidia NVreg_CreateImexChannel0=1\n"
        yield When(JoinedBy(Fabric.RACK), File(CHANNEL_OPTION, option))


def fabric_states(ctx: RoleContext, wanted: DriverSection, nodes: tuple[str, ...], driver: Loadable) -> Iterator[When]:
    """Yield Fabric Manager for switches, the subnet manager for NVLink 5, and IMEX for racks.

    ``nodes``: addresses of the rack's nodes.
    """
    if wanted.fabric_manager:  # without Fabric Manager, CUDA fails on an HGX board (error 802)
        yield from (When(JoinedBy(Fabric.NVLINK5), one) for one in _bridged(ctx, wanted, wanted.fabric_manager))
        # A restart of Fabric Manager ends jobs, but happens only with a new driver, which also ends jobs.
        package = _package(ctx.stack, wanted, wanted.fabric_manager, wanted.fabric_manager_package, FABRIC_MANAGER)
        managed = (*package, WithDriver(driver, Service(FABRIC_MANAGER)))
        yield from (When(HasNvSwitch(), one) for one in managed)
    if wanted.imex:
        package = _package(ctx.stack, wanted, wanted.imex, wanted.imex_package, IMEX)
        config = File(NODES, "".join(f"{node}\n" for node in nodes))
        named = (config, RestartedAfter(IMEX, (NODES,), (config,))) if nodes else ()
        service = Service(IMEX)
        rack = (*package, *named[:1], WithDriver(driver, ImexChannel()), WithDriver(driver, service), *named[1:])
        yield from (When(JoinedBy(Fabric.RACK), one) for one in rack)


def _bridged(ctx: RoleContext, wanted: DriverSection, manager: FabricManager) -> Iterator[Resource]:
    if manager.subnet_manager is None:
        yield SubnetManagerNamed(wanted.version)
        return
    names = "".join(f"{name}\n" for name in BRIDGE_MODULES)
    yield File(BRIDGES_AT_BOOT, f"# Written by Hostwright, for NVLink's subnet manager.\n{names}")
    yield BridgeModules()
    yield Debs(("infiniband-diags",))
    subnet = manager.subnet_manager
    yield from _package(ctx.stack, wanted, subnet, subnet.package or "nvlsm", FABRIC_MANAGER)


def _package(stack: Stack, wanted: DriverSection, part: DriverPart, name: str, unit: str) -> Iterator[Resource]:
    if part.artifact:
        yield DebFile(stack.artifact(part.artifact), name, part.version, unit)
        return
    source = wanted.repository.list_file if wanted.repository else ""
    package = Debs((f"{name}={part.version}",), hold=True, source=source)
    yield package
    yield RestartedAfter(unit, (f"/var/lib/dpkg/info/{name}.list",), (package,))
