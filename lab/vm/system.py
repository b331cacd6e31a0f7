"""Files that only the root filesystem of a virtual machine has: its network and boot configuration."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path

from lab.config import LAB_PREFIX, Machine

ROOT_UUID = "48570000-0000-4000-8000-000000000001"  #: UUID of the root filesystem of every virtual machine
_NETWORK = """\
[Match]
MACAddress={mac}

[Link]
MTUBytes={mtu}

[Network]
Address={address}
Gateway={gateway}
"""
#: GRUB configuration of a virtual machine before the first `update-grub`
_GRUB = """\
set timeout=0
linux /vmlinuz root=UUID={uuid} ro {arguments}
initrd /initrd.img
boot
"""
#: kernel arguments of a virtual machine. Without no_timer_check, a slow timer may cause a kernel panic.
_ARGUMENTS = "console=tty0 console=ttyS0,115200 no_timer_check"
_DEFAULTS = f'GRUB_DEFAULT=0\nGRUB_TIMEOUT=0\nGRUB_TERMINAL=console\nGRUB_CMDLINE_LINUX="{_ARGUMENTS}"\n'
#: tmpfiles.d lines that link the emulated hardware to the kernel's own directories
_HARDWARE = """\
d /run/hostwright-lab/hardware/persistence 0777
L /run/hostwright-lab/hardware/module - - - - /sys/module
L /run/hostwright-lab/hardware/pci - - - - /sys/bus/pci/devices
L /run/hostwright-lab/hardware/proc - - - - /proc/driver
"""
#: setting for an initramfs with only the needed drivers. An initramfs with all drivers takes ten minutes.
_INITRAMFS = "MODULES=dep\n"
#: names of units that configure a virtual machine's network. Containers are configured from outside.
_UNMASKED = ("systemd-networkd.service", "systemd-networkd.socket")


def settle(machine: Machine, mtu: int) -> None:
    """Write the boot and network configuration into the mounted root of ``machine``."""
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
