"""Made-up fleets as an audit would find them: mostly well, some hosts ill in the ways of DGX and T4 racks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hostwright.audit.fleetaudit import (
    Deviation,
    Finding,
    FleetAudit,
    HostAudit,
    Layer,
    LayerStatus,
    NotChecked,
    Reading,
    ReleaseRecord,
    ValueSpread,
    worst,
)
from hostwright.audit.hardware.gpu import EccCounts, Gpu, GpuLink, GpuProcess
from hostwright.audit.reports.trend import TrendPoint
from hostwright.standard.roles.driver.xids.events import event

AT = "2026-11-21T10:04:31+00:00"
STACK = "tensorflow-2.9"
LAYERS = ("base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "gpu")
DRIVER, OLD_DRIVER = "470.256.02", "470.182.03"
KERNEL, OTHER_KERNEL = "5.4.0-216-generic", "5.4.0-200-generic"
SEARCH_PATH = "/usr/local/cuda-11.2/bin:/usr/bin:/bin"
GIB = 2**30

OFF_THE_BUS = Finding(
    "gpu-off-the-bus", "gpu", True,
    ("NVRM: Xid (PCI:0000:87:00): 79, pid=2113, name=python3, GPU has fallen off the bus.",
     "lspci names 8 cards, nvidia-smi 7"),
    "a card stopped answering on the PCI bus: power, heat, seat or the card itself",
    "Drain the host and cycle its power; when it comes again on the same card, have the card replaced",
    False, "hostwright doctor --explain gpu-off-the-bus",
)  # fmt: skip
MISMATCH = Finding(
    "library-version-mismatch", "driver", True,
    ("Failed to initialize NVML: Driver/library version mismatch", f"loaded {OLD_DRIVER}, installed {DRIVER}"),
    "the libraries of a new driver are there, and the kernel still runs the old module",
    "Drain the host and run invoke provision, which reboots it",
    True, "hostwright doctor --explain library-version-mismatch",
)  # fmt: skip
NO_MODULE = Finding(
    "kernel-without-module", "driver", True,
    (f"kernel {OTHER_KERNEL} is running and /lib/modules/{OTHER_KERNEL} has no nvidia.ko",
     "dkms status: installed for 5.4.0-216-generic only"),
    "the kernel was upgraded and the driver's module was not built for it",
    "Install the headers of the running kernel and run invoke provision",
    True, "hostwright doctor --explain kernel-without-module",
)  # fmt: skip
NARROW = Finding(
    "pcie-link-narrow", "gpu", False, ("GPU 3 0000:4e:00.0: 8 of 16 lanes",),
    "a card has fewer PCIe lanes than it could have, so copies to it are slow",
    "Check the card's seat and the riser at the next maintenance", False,
    "hostwright doctor --explain pcie-link-narrow",
)  # fmt: skip
UPGRADES = Finding(
    "unattended-driver-upgrades", "base", False, ("apt-get would upgrade libnvidia-compute-470 tonight",),
    "unattended-upgrades may replace the driver's libraries beneath running work",
    "Run invoke provision, which pins them", True, "hostwright doctor --explain unattended-driver-upgrades",
)  # fmt: skip
LOST = event(
    79, "0000:87:00", "2026-11-21T08:51:17+00:00", "pid=2113, name=python3, GPU has fallen off the bus."
)  # fmt: skip
REMAPPED = event(
    63, "0000:90:00", "2026-11-20T23:02:40+00:00",
    "pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping", 3,
)  # fmt: skip
ALIASED = Deviation("cuda", "link /usr/local/cuda", "/usr/local/cuda-11.4", "/usr/local/cuda-11.2", "drift")
UNHELD = Deviation("cuda", "package cuda-toolkit-11-2", "11.2.2-1, not held", "11.2.2-1, held", "drift")
NUMPY = Deviation("tensorflow", "venv /opt/tensorflow: numpy", "2.0.2", "1.23.5", "drift")
TOOLKIT = Deviation("container", "nvidia-container-toolkit", "1.17.4-1", "1.17.8-1", "intent")


def gpu(index: int, host: int, *, model: str = "NVIDIA A100-SXM4-80GB") -> Gpu:
    """One card of a DGX A100, or of the model named, at work."""
    bus = ("07", "0f", "47", "4e", "87", "90", "b7", "bd")[index % 8]
    return Gpu(
        index, f"0000:{bus}:00.0", f"GPU-{host:08x}-4b1c-11ec-9a3e-{index:012x}", model,
        f"15636210{host:03d}{index:02d}",
        "92.00.45.00.03", 80 * GIB, (3 + index) * GIB, 4, 4, 16, 16, 0, True,
        EccCounts(index % 2, 0, 0, 0, index % 2, 0), EccCounts(index * 3, 0, 0, 0, index * 3, 0),
        None, None, None, 0, 0, False, False, True, False, None, (), 34 + (host + 3 * index) % 20, 89, 92,
        61.0 + 7 * index, 400.0, "P0", tuple(GpuLink(number, True) for number in range(12)),
        (GpuProcess(4000 + host + index, "python3", "C", (3 + index) * GIB),) if index < 2 else (),
    )  # fmt: skip


def readings(host: int, *, driver: str = DRIVER, kernel: str = KERNEL) -> tuple[Reading, ...]:
    """About ninety values of a host."""
    fixed = [
        ("base", "distribution", "Ubuntu 20.04.6 LTS", None), ("base", "kernel", kernel, None),
        ("base", "BIOS", "1.21" if host % 31 else "1.18", None), ("base", "memory", "1007 GiB", None),
        ("base", "dkms", "2.8.1-5ubuntu2", None), ("base", "gcc", "9.4.0", None),
        ("driver", "loaded", driver, DRIVER), ("driver", "installed", driver, DRIVER),
        ("driver", "module for the running kernel", driver, DRIVER),
        ("driver", "persistence daemon", "active", "active"),
        ("cuda", "toolkit", "11.2.2", "11.2.2"), ("cuda", "nvcc", "11.2.152", "11.2.152"),
        ("cudnn", "libcudnn", "8.1.0.77", "8.1.0.77"), ("environment", "PATH", SEARCH_PATH, None),
        ("tensorflow", "python", "3.9.5", "3.9.5"), ("tensorflow", "tensorflow", "2.9.0", "2.9.0"),
        ("tensorflow", "numpy", "1.23.5", "1.23.5"), ("container", "docker", "20.10.24", "20.10.24"),
        ("container", "nvidia-container-toolkit", "1.17.8-1", "1.17.8-1"),
    ]  # fmt: skip
    library = ["cublas", "cufft", "curand", "cusolver", "cusparse", "npp", "nvjpeg", "nvrtc", "cudart", "cupti"]
    fixed += [("cuda", f"lib{one}", "11.2.152", "11.2.152") for one in library]
    fixed += [
        ("tensorflow", f"package {number:02d}", f"{number % 5}.{number}.1", f"{number % 5}.{number}.1")
        for number in range(45)
    ]
    fixed += [("gpu", f"GPU {index} VBIOS", "92.00.45.00.03", None) for index in range(8)]
    fixed += [("gpu", f"GPU {index} serial", f"15636210{host:03d}{index:02d}", None) for index in range(8)]
    return tuple(Reading(layer, name, have, want) for layer, name, have, want in fixed)


def well(number: int, *, cards: int = 8) -> HostAudit:
    """A host as desired."""
    rack = f"rack{1 + (number - 1) // 20}"
    return HostAudit(
        f"gpu{number:03d}", STACK, AT, "desired", "", tuple(Layer(name, "desired") for name in LAYERS),
        readings(number), gpus=tuple(gpu(index, number) for index in range(cards)),
        record=ReleaseRecord(STACK, "2026-11-14T07:12:09+00:00", "20261114-071009-a3f1", "ada@desk"),
        groups=("gpu_hosts", "dgx", rack),
    )  # fmt: skip


def ill(host: HostAudit, layers: dict[str, LayerStatus], **more: object) -> HostAudit:
    """The host with these layers not as desired."""
    found = tuple(Layer(one.name, layers.get(one.name, one.status)) for one in host.layers)
    return replace(host, layers=found, status=worst(one.status for one in found), **more)  # type: ignore[arg-type]


def failing(number: int) -> HostAudit:
    """A card fell off the bus, another lost lanes and has bad memory; two libraries differ."""
    host = well(number)
    cards = list(host.gpus)
    cards[3] = replace(cards[3], pcie_width=8, temperature=90)
    cards[5] = replace(cards[5], ecc_volatile=EccCounts(412, 2), ecc_aggregate=EccCounts(9120, 7), remapped_corrected=3,
                       remapped_uncorrected=2, remap_pending=True)  # fmt: skip
    return ill(
        host, {"gpu": "failing", "cuda": "drift", "base": "warning"},
        findings=(UPGRADES, NARROW, OFF_THE_BUS), deviations=(ALIASED, UNHELD), gpus=tuple(cards),
        xids=(LOST, REMAPPED),
        not_checked=(NotChecked("container", "container-gpu-smoke", "docker info ended with status 1"),),
        notes=("locked by grace@ops since 2026-11-21 09:10 UTC: RMA 4711",),
    )  # fmt: skip


def lagging(number: int) -> HostAudit:
    """The stack has a newer container toolkit since."""
    return ill(well(number), {"container": "intent"}, deviations=(TOOLKIT,))


def new(number: int) -> HostAudit:
    """Nobody has provisioned it yet."""
    roles = LAYERS[:-1]
    missing = tuple(Deviation(name, f"layer {name}", "absent", "as the stack says", "new") for name in roles)
    return ill(well(number), dict.fromkeys(roles, "new"), record=None, deviations=missing)


def unread(number: int) -> HostAudit:
    """It is switched off."""
    why = "ssh: connect to host 10.4.0.16 port 22: No route to host; is it switched on?"
    layers: dict[str, LayerStatus] = dict.fromkeys(LAYERS, "unread")
    return ill(well(number), layers, readings=(), gpus=(), record=None, sentence=why)


def aliased(number: int) -> HostAudit:
    """Somebody installed another toolkit."""
    return ill(well(number), {"cuda": "drift"}, deviations=(ALIASED, UNHELD))


def mismatched(number: int) -> HostAudit:
    """The driver was replaced and the old module is still loaded."""
    old = readings(number, driver=OLD_DRIVER)
    return ill(well(number), {"driver": "failing"}, findings=(MISMATCH,), readings=old)


def moduleless(number: int) -> HostAudit:
    """It runs a kernel without the driver's module."""
    found = readings(number, kernel=OTHER_KERNEL)
    layers: dict[str, LayerStatus] = {"driver": "failing", "container": "intent"}
    return ill(well(number), layers, findings=(NO_MODULE,), deviations=(TOOLKIT,), readings=found)


def warned(number: int) -> HostAudit:
    """As desired, and worth a look."""
    return ill(well(number), {"base": "warning"}, findings=(UPGRADES,))


def newer_numpy(number: int) -> HostAudit:
    """A user's pip was at work, and a card lost lanes."""
    layers: dict[str, LayerStatus] = {"tensorflow": "drift", "gpu": "warning"}
    return ill(well(number), layers, deviations=(NUMPY,), findings=(NARROW,))


#: of each fifty hosts these are not well
KINDS = {
    5: warned, 7: failing, 9: warned, 11: mismatched, 13: aliased, 14: aliased, 16: unread, 18: newer_numpy,
    20: lagging, 21: lagging, 22: moduleless, 23: new,
}  # fmt: skip


def fleet(size: int, *, stand_ins: tuple[str, ...] = ()) -> FleetAudit:
    """An audit of so many hosts."""
    hosts = tuple(replace(KINDS.get(number % 50, well)(number), stand_ins=stand_ins) for number in range(1, size + 1))
    return FleetAudit(AT, "inventory/", hosts, spreads(hosts), 4.2 + size / 40)


def spreads(hosts: tuple[HostAudit, ...]) -> tuple[ValueSpread, ...]:
    """Kernels with outliers, VBIOS with outliers, a draw, and what is alike."""
    names = tuple(host.host for host in hosts if host.status != "unread")
    odd, rare, half = names[10::23], names[3::60], len(names) // 2
    kernels = _values(names, OTHER_KERNEL, odd, KERNEL)
    vbios = _values(names, "92.00.36.00.01", rare, "92.00.45.00.03")
    bios = (("1.21", names[:half]), ("1.18", names[half:]))
    return (
        ValueSpread("base", "kernel", "Ubuntu 20.04", kernels, KERNEL, odd),
        ValueSpread("gpu", "VBIOS", "NVIDIA A100-SXM4-80GB", vbios, "92.00.45.00.03", rare),
        ValueSpread("base", "BIOS", "DGXA100 920-23687", bios, "", ()),
        ValueSpread("base", "distribution", "", (("Ubuntu 20.04.6 LTS", names),), "Ubuntu 20.04.6 LTS", ()),
        ValueSpread("base", "memory", "DGXA100 920-23687", (("1007 GiB", names),), "1007 GiB", ()),
    )


def _values(
    names: tuple[str, ...], other: str, has_other: tuple[str, ...], most: str
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (most, tuple(name for name in names if name not in has_other)), (other, has_other)


def trend(size: int, days: int = 42) -> tuple[TrendPoint, ...]:
    """Six weeks: a driver is rolled out in three waves, drift grows and is mended, Sundays are not audited."""
    start, points = date(2026, 10, 11), []
    for number in range(days):
        day = start + timedelta(days=number)
        if day.weekday() == 6:
            continue
        moved = size if number > 30 else size // 2 if number > 24 else size // 10 if number > 17 else 0
        bad = {"drift": (number * 7 % 19) * size // 400 + 1, "failing": number % 5 * size // 250 + (number % 3 == 0),
               "unread": number % 7 * size // 300, "intent": (size - moved) // 12 if 17 < number <= 30 else 0,
               "new": size // 20 if number < 6 else 0}  # fmt: skip
        lagging = max(0, size // 3 - number * size // 90)
        points.append(
            TrendPoint(
                day.isoformat(),
                {**bad, "desired": size - sum(bad.values())},
                {
                    "driver loaded": {
                        key: hosts for key, hosts in ((OLD_DRIVER, size - moved), (DRIVER, moved)) if hosts
                    },
                    "base kernel": {
                        KERNEL: size - lagging,
                        OTHER_KERNEL: lagging - lagging // 3,
                        "5.4.0-189-generic": lagging // 3,
                    },
                    "container nvidia-container-toolkit": {"1.17.8-1": size - lagging // 4, "1.17.4-1": lagging // 4},
                    "cuda toolkit": {"11.2.2": size},
                    "cudnn libcudnn": {"8.1.0.77": size},
                    "tensorflow tensorflow": {"2.9.0": size},
                },
            )
        )
    return tuple(points)


def ages(audit: FleetAudit) -> dict[tuple[str, str, str], datetime]:
    """Since when things are so."""
    found: dict[tuple[str, str, str], datetime] = {}
    for number, host in enumerate(audit.hosts):
        since = datetime(2026, 11, 20 - number % 17, 6, tzinfo=UTC)
        if host.status != "desired":
            found[host.host, "status", ""] = since
        found |= {(host.host, "deviation", f"{one.layer} {one.what}"): since for one in host.deviations}
        found |= {(host.host, "finding", one.rule): since for one in host.findings}
    return found
