"""Emulated hardware of a lab host: its NVIDIA cards, and the kernel's behaviour with them.

A lab host shares this machine's kernel, which has no NVIDIA card. `install` writes a description of cards, and a boot
unit that exposes them under `/sys` and `/proc`. In the host, `modprobe nvidia` reads the version of the module that
dkms compiled, and "loads" it (see `vendor/src/hardware`).
"""

from __future__ import annotations

import shutil
import struct
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

_SCRIPTS = Path(__file__).parent / "vendor" / "src" / "hardware"
#: path of the description of GPUs in a host's root filesystem
HARDWARE = Path("opt/hostwright-lab/hardware")
_UNIT = "hostwright-lab-hardware.service"

NVIDIA = 0x10DE
_CLASS_3D = 0x030200
_CLASS_BRIDGE = 0x068000
#: number of bytes of PCI configuration space that lspci reads
_CONFIG_BYTES = 256
#: PCIe generation → speed of a lane in GT/s, as in sysfs
_SPEED = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0"}
#: namespace for GPU UUIDs, which must survive a reinstallation
_CARDS = uuid.UUID("4857a0c4-1ab0-4d1e-9f5b-6f2d7c0e3a11")


@dataclass(frozen=True, slots=True)
class Card:
    """NVIDIA PCI card, with IDs from the public PCI ID list."""

    name: str  #: product name of the card in the driver's reports
    device: int
    subsystem: int
    vbios: str
    minimum_driver: int = 418  #: first driver branch that supports the card
    generation: int = 3  #: PCIe generation of the card's link
    width: int = 16  #: current number of lanes of the card's PCIe link
    max_width: int = 16  #: maximum number of lanes of the card's PCIe link


T4 = Card("Tesla T4", 0x1EB8, 0x12A2, "90.04.96.00.01")
V100 = Card("Tesla V100-PCIE-16GB", 0x1DB4, 0x1214, "88.00.48.00.02")
A100 = Card("NVIDIA A100-PCIE-40GB", 0x20F1, 0x145F, "92.00.25.00.08", minimum_driver=450, generation=4)
A100_SXM = Card("NVIDIA A100-SXM4-40GB", 0x20B0, 0x134F, "92.00.19.00.01", minimum_driver=450, generation=4)
H100 = Card("NVIDIA H100 80GB HBM3", 0x2330, 0x16C1, "96.00.30.00.01", minimum_driver=525, generation=5)
#: switch chip of HGX A100 boards, for which CUDA requires Fabric Manager
_NVSWITCH = Card("NVSwitch", 0x1AF1, 0x147A, "", generation=4)


@dataclass(frozen=True, slots=True)
class Hardware:
    """Emulated hardware of a lab host."""

    cards: tuple[Card, ...] = (T4,)
    nouveau: bool = False  #: whether nouveau binds the cards at boot, unless nouveau is blacklisted
    #: version of an earlier driver's module that is loaded until the first reboot; None: none
    loaded: str | None = None
    secure_boot: bool = False  #: whether the kernel loads only signed modules
    nvswitch: int = 0  #: number of the host's NVSwitches

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Hardware:
        """Return a `Hardware` from the JSON form ``data`` of `dataclasses.asdict`."""
        known = {field.name for field in fields(cls)}
        values = {key: value for key, value in data.items() if key in known}
        values["cards"] = tuple(Card(**card) for card in data.get("cards", ()))
        return cls(**values)


def install(root: Path, spec: Hardware, host: str = "", *, modules: bool = True) -> None:
    """Write ``spec`` into the root filesystem of a host that is off. The cards exist from the next boot on.

    ``host`` (default: from `etc/hostname`) determines the cards' UUIDs and serial numbers. Without ``modules``, the
    loading of kernel modules is not emulated.
    """
    home = root / HARDWARE
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    _programs(root, home, modules=modules)
    _pci_function(home, "0000:00:00.0", Card("Host bridge", 0x2020, 0x0000, ""), 0x060000, vendor=0x8086)
    for bus, card in _slots(spec.cards, first=0x3B):
        _pci_function(home, bus, card, _CLASS_3D)
        _card(home, bus, card, host or _hostname(root))
    for bus, switch in _slots((_NVSWITCH,) * spec.nvswitch, first=0xC0):
        _pci_function(home, bus, switch, _CLASS_BRIDGE)
    (home / "cards").mkdir(exist_ok=True)
    if spec.nouveau:
        (home / "nouveau").touch()
    if spec.loaded:
        (home / "power-on-version").write_text(f"{spec.loaded}\n")
    if spec.secure_boot:
        _secure_boot(home)


def _hostname(root: Path) -> str:
    path = root / "etc/hostname"
    return path.read_text().strip() if path.is_file() else "host"


def _slots(cards: tuple[Card, ...], first: int) -> Iterator[tuple[str, Card]]:
    for index, card in enumerate(cards):
        yield f"0000:{first + 2 * index:02x}:00.0", card


def _programs(root: Path, home: Path, *, modules: bool) -> None:
    for name in ("boot", "insert", "remove", "kernel.sh", "README"):
        _copy(name, home / name)
    if modules:
        _copy("rmmod", root / "usr/local/sbin/rmmod")
        _copy("modprobe.conf", root / "etc/modprobe.d/hostwright-lab.conf")
    _copy(_UNIT, root / "etc/systemd/system" / _UNIT)
    wanted = root / "etc/systemd/system/sysinit.target.wants" / _UNIT
    wanted.parent.mkdir(parents=True, exist_ok=True)
    wanted.unlink(missing_ok=True)
    wanted.symlink_to(f"/etc/systemd/system/{_UNIT}")


def _copy(name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    data = (_SCRIPTS / name).read_bytes()
    target.write_bytes(data)
    target.chmod(0o755 if data.startswith(b"#!") else 0o644)


def _pci_function(home: Path, bus: str, card: Card, pci_class: int, vendor: int = NVIDIA) -> None:
    speed = f"{_SPEED[card.generation]} GT/s PCIe"
    values = {
        "vendor": f"0x{vendor:04x}",
        "device": f"0x{card.device:04x}",
        "subsystem_vendor": f"0x{vendor:04x}",
        "subsystem_device": f"0x{card.subsystem:04x}",
        "class": f"0x{pci_class:06x}",
        "revision": "0xa1",
        "irq": "16",
        "numa_node": "0",
        "local_cpulist": "0",
        "enable": "1",
        "current_link_speed": speed,
        "max_link_speed": speed,
        "current_link_width": str(card.width),
        "max_link_width": str(card.max_width),
        "modalias": _modalias(card, pci_class, vendor),
        "resource": "\n".join(["0x0000000000000000 0x0000000000000000 0x0000000000000000"] * 13),
    }
    directory = home / "pci" / bus
    directory.mkdir(parents=True)
    for name, value in values.items():
        (directory / name).write_text(f"{value}\n")
    (directory / "config").write_bytes(_config_space(card, pci_class, vendor))


def _modalias(card: Card, pci_class: int, vendor: int) -> str:
    ids = f"v{vendor:08X}d{card.device:08X}sv{vendor:08X}sd{card.subsystem:08X}"
    return f"pci:{ids}bc{pci_class >> 16:02X}sc{pci_class >> 8 & 0xFF:02X}i{pci_class & 0xFF:02X}"


def display_config(card: Card) -> bytes:
    """Return the PCI configuration space of ``card`` as a display controller."""
    return _config_space(card, _CLASS_3D, NVIDIA)


def _config_space(card: Card, pci_class: int, vendor: int) -> bytes:
    config = bytearray(_CONFIG_BYTES)
    struct.pack_into("<HH", config, 0x00, vendor, card.device)
    config[0x08] = 0xA1  # byte 0x08 is the revision
    config[0x09:0x0C] = pci_class.to_bytes(3, "little")
    struct.pack_into("<HH", config, 0x2C, vendor, card.subsystem)
    return bytes(config)


def _card(home: Path, bus: str, card: Card, host: str) -> None:
    identity = uuid.uuid5(_CARDS, f"{host} {bus} {card.name}")
    lines = {
        "Model": card.name,
        "IRQ": "16",
        "GPU UUID": f"GPU-{identity}",
        "Serial": str(1_320_000_000_000 + identity.int % 10**9),
        "Video BIOS": card.vbios,
        "Bus Type": "PCIe",
        "Bus Location": bus,
    }
    directory = home / "cards" / bus
    directory.mkdir(parents=True)
    (directory / "information").write_text("".join(f"{key}: \t {value}\n" for key, value in lines.items()))
    (directory / "minimum-driver").write_text(f"{card.minimum_driver}\n")


def _secure_boot(home: Path) -> None:
    variables = home / "firmware/efi/efivars"
    variables.mkdir(parents=True)
    guid = "8be4df61-93ca-11d2-aa0d-00e098032b8c"  # this GUID is EFI_GLOBAL_VARIABLE
    for name, value in (("SecureBoot", 1), ("SetupMode", 0)):
        (variables / f"{name}-{guid}").write_bytes(bytes((6, 0, 0, 0, value)))
