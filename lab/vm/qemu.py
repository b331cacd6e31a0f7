"""QEMU's command line for a lab host, and the choice of its accelerator."""

from __future__ import annotations

import os
import re
from pathlib import Path

from lab.config import Machine

EMULATOR = "qemu-system-x86_64"
OVMF = Path("/usr/share/OVMF")
CODE = OVMF / "OVMF_CODE_4M.fd"
#: files of firmware variables, without keys and with Microsoft's keys. Keys enforce Secure Boot.
VARIABLES, VARIABLES_SECURE = OVMF / "OVMF_VARS_4M.fd", OVMF / "OVMF_VARS_4M.ms.fd"
# memory of a virtual machine, as an option of QEMU. The stack requires 4 GB.
MEMORY = "5G"
PROCESSORS = 2

_KVM = Path("/dev/kvm")


def accelerator(cpuinfo: str, device: bool) -> str:
    """Return QEMU's accelerator: ``kvm`` if KVM can run a virtual machine, else ``tcg``.

    ``cpuinfo``: text of /proc/cpuinfo. ``device``: whether ``/dev/kvm`` is usable. KVM also requires the CPU flag
    ``vmx`` or ``svm``.
    """
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    hardware = {"vmx", "svm"} & set(flags[1].split() if flags else ())
    return "kvm" if device and hardware else "tcg"


def here() -> str:
    """Return QEMU's accelerator on this machine: ``kvm`` or ``tcg``."""
    return accelerator(Path("/proc/cpuinfo").read_text(), os.access(_KVM, os.R_OK | os.W_OK))


def disk(machine: Machine) -> Path:
    """Return the path of the file with the host's writes since the last save of its disk."""
    return machine.directory / "disk.qcow2"


def variables(machine: Machine) -> Path:
    """Return the path of the file with the host's firmware variables."""
    return machine.directory / "firmware.fd"


def command(machine: Machine, accelerate: str) -> list[str]:
    """Return the QEMU command that runs the host until it powers off, with the console on standard output."""
    processor = "host" if accelerate == "kvm" else "max"
    acceleration = "kvm" if accelerate == "kvm" else "tcg,thread=multi"
    return [
        *(EMULATOR, "-nodefaults", "-display", "none", "-name", f"{machine.lab.name}-{machine.name}"),
        # The memory is in a file, which the process of the emulated card also maps.
        *("-machine", "q35,memory-backend=ram", "-m", MEMORY, "-smp", str(PROCESSORS)),
        *("-object", f"memory-backend-memfd,id=ram,size={MEMORY},share=on"),
        *("-accel", acceleration, "-cpu", processor),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-drive", f"if=pflash,format=raw,readonly=on,file={CODE}"),
        *("-drive", f"if=pflash,format=raw,file={variables(machine)}"),
        *("-drive", f"if=virtio,format=qcow2,cache=unsafe,file={disk(machine)}"),
        *("-netdev", f"tap,id=cable,ifname={machine.link},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=cable,mac={machine.mac},romfile="),
        *("-device", "virtio-rng-pci"),
    ]
