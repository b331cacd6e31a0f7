"""Disks of virtual machines that are off: built from the host's files, saved and restored as qcow2 layers."""

from __future__ import annotations

import shutil
from pathlib import Path

from hostwright.common.errors import LabError
from hostwright.common.quoting import sh_file
from lab.config import HostOptions, Machine
from lab.programs import run
from lab.vm import qemu
from lab.vm.system import ROOT_UUID

SIZE_BYTES = 40 * 2**30  #: maximum size in bytes of a virtual machine's disk, which is a sparse file


def make(machine: Machine, options: HostOptions) -> None:
    """Create a host's first disk from the mounted root filesystem, and the firmware variables."""
    image = machine.directory / "disk.img"
    values = {"root": str(machine.merged), "image": str(image), "size_bytes": str(SIZE_BYTES), "uuid": ROOT_UUID}
    run(["sh", "-euc", sh_file(__file__, "sh/disk.sh", **values)])
    secure = options.hardware.secure_boot
    shutil.copyfile(qemu.VARIABLES_SECURE if secure else qemu.VARIABLES, qemu.variables(machine))
    _layer(machine, image, "raw")


def save(machine: Machine, name: str) -> None:
    """Save disk and firmware variables of a host as ``name``. The host must be off."""
    kept = _kept(machine, name)
    if kept.exists():
        raise LabError(f"lab host {machine.name} has a saved disk {name} already; use another name")
    shutil.copyfile(qemu.variables(machine), kept.with_suffix(".fd"))
    qemu.disk(machine).rename(kept)
    _layer(machine, kept, "qcow2")


def restore(machine: Machine, name: str) -> None:
    """Restore disk and firmware variables that `save` stored as ``name``. The host must be off."""
    kept = _kept(machine, name)
    if not kept.exists():
        raise LabError(f"lab host {machine.name} has no saved disk {name}")
    shutil.copyfile(kept.with_suffix(".fd"), qemu.variables(machine))
    _layer(machine, kept, "qcow2")


def _kept(machine: Machine, name: str) -> Path:
    return machine.directory / f"saved-{name}.qcow2"


def _layer(machine: Machine, below: Path, kind: str) -> None:
    """Create a qcow2 file for the host's writes on the read-only file ``below``, which has the format ``kind``."""
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", below, qemu.disk(machine)])
