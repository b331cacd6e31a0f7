"""What the root filesystem of a virtual machine has beside that of other lab hosts: its own network and boot."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path

from lab.config import LAB_PREFIX, Machine

ROOT_UUID = "48570000-0000-4000-8000-000000000001"  #: of every machine's root filesystem; each has its own disk
_NETWORK = """\
[Match]
MACAddress={mac}

[Link]
MTUBytes={mtu}

[Network]
Address={address}
Gateway={gateway}
"""
#: As the first `update-grub` finds it; that writes its own, with a menu of the kernels that are there.
_GRUB = """\
set timeout=0
linux /vmlinuz root=UUID={uuid} ro {arguments}
initrd /initrd.img
boot
"""
#: An emulated timer on a busy machine fails the kernel's test of it, which then panics.
_ARGUMENTS = "console=tty0 console=ttyS0,115200 no_timer_check"
_DEFAULTS = f'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_TERMINAL=console\nGRUB_CMDLINE_LINUX="{_ARGUMENTS}"\n'
#: Where the stand-in's programs look for made-up hardware: here it is what the kernel shows.
_HARDWARE = """\
d /run/hostwright-lab/hardware/persistence 0777
L /run/hostwright-lab/hardware/module - - - - /sys/module
L /run/hostwright-lab/hardware/pci - - - - /sys/bus/pci/devices
L /run/hostwright-lab/hardware/proc - - - - /proc/driver
"""
#: Only what this machine needs: with every driver, an emulated machine builds its initramfs for ten minutes.
_INITRAMFS = "MODULES=dep\n"
#: The units that a host with a cable from outside masks.
_UNMASKED = ("systemd-networkd.service", "systemd-networkd.socket")


def settle(machine: Machine, mtu: int) -> None:
    """Write into the mounted root of ``machine`` how it boots and reaches the network."""
    root = machine.merged
    address = IPv4Interface((machine.address, LAB_PREFIX))
    network = _NETWORK.format(mac=machine.mac, mtu=mtu, address=address, gateway=machine.lab.gateway.ip)
    _write(root / "etc/systemd/network/lab.network", network)
    for unit in _UNMASKED:
        (root / "etc/systemd/system" / unit).unlink(missing_ok=True)
    wanted = root / "etc/systemd/system/multi-user.target.wants" / _UNMASKED[0]
    wanted.parent.mkdir(parents=True, exist_ok=True)
    if not wanted.is_symlink():
        wanted.symlink_to(f"/lib/systemd/system/{_UNMASKED[0]}")
    _write(root / "etc/tmpfiles.d/hostwright-lab.conf", _HARDWARE)
    _write(root / "etc/fstab", f"UUID={ROOT_UUID} / ext4 errors=remount-ro 0 1\n")
    _write(root / "etc/initramfs-tools/conf.d/lab", _INITRAMFS)
    _write(root / "etc/default/grub", _DEFAULTS)
    _write(root / "boot/grub/grub.cfg", _GRUB.format(uuid=ROOT_UUID, arguments=_ARGUMENTS))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
