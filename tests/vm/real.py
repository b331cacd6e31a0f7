"""NVIDIA's own R470 module, compiled from Debian's package for the kernel of a virtual machine, and brought to it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hostwright.common.quoting import sh_file
from lab import machine as host
from lab.config import Machine, cache_directory
from lab.image import ensure_base
from lab.mounts import mount_overlay, unmount
from lab.programs import run_logged
from lab.vm.base import ensure_vm_base


def real_module(kernel: str) -> Path:
    """The module for ``kernel`` in the lab's cache; compiled first if it is missing, four minutes on two cores."""
    cache = cache_directory()
    made = cache / "vm" / f"nvidia-tesla-470-{kernel}.ko"
    if made.exists():
        return made
    made.parent.mkdir(exist_ok=True)
    base = ensure_vm_base(ensure_base("bullseye", cache))
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        work = Path(name)
        for part in ("upper", "work", "merged"):
            (work / part).mkdir()
        mount_overlay(base, work / "upper", work / "work", work / "merged")
        try:
            values = {"root": str(work / "merged"), "kernel": kernel, "module": str(made)}
            script = sh_file(__file__, "real.sh", **values)
            log = made.with_suffix(".log")
            run_logged(["unshare", "--mount", "--pid", "--fork", "sh", "-euc", script], log)
        finally:
            unmount(work / "merged")
    return made


def send(machine: Machine, file: Path, place: str) -> None:
    """Copy a file of this machine to a place on the host, as root."""
    with file.open("rb") as data:
        subprocess.run(host.inside(machine, ["sh", "-c", f"cat >{place}"]), stdin=data, check=True)
