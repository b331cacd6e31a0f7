"""NVIDIA's own modules, compiled from Debian's packages for the kernel of a virtual machine, and brought to it."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.quoting import sh_file
from lab import machine as host
from lab.config import Distro, Machine, cache_directory
from lab.image import ensure_base
from lab.mounts import mount_overlay, unmount
from lab.programs import run_logged
from lab.vm.base import ensure_vm_base


@dataclass(frozen=True)
class Source:
    """A package with a module's source, and the machine for whose kernel it is compiled."""

    package: str
    module: str  #: its name for DKMS
    distro: Distro
    driver: bool = False  #: whether that machine has one
    archive: str = ""  #: another suite of the distribution's archive that has it, after the name of one of its own


R470 = Source("nvidia-tesla-470-kernel-dkms", "nvidia-tesla-470", "bullseye")
#: Of Debian 12, for Debian 13: a host that was upgraded.
R535 = Source("nvidia-kernel-dkms", "nvidia-current", "trixie", True, "trixie-security bookworm-security")


def real_module(source: Source, kernel: str) -> Path:
    """The module for ``kernel`` in the lab's cache; compiled first if it is missing, four minutes on two cores."""
    cache = cache_directory()
    made = cache / "vm" / f"{source.module}-{kernel}.ko"
    if made.exists():
        return made
    made.parent.mkdir(exist_ok=True)
    base = ensure_vm_base(ensure_base(source.distro, cache), driver=source.driver)
    with tempfile.TemporaryDirectory(dir=made.parent) as name:
        work = Path(name)
        for part in ("upper", "work", "merged"):
            (work / part).mkdir()
        mount_overlay(base, work / "upper", work / "work", work / "merged")
        try:
            values = {
                "root": str(work / "merged"),
                "kernel": kernel,
                "package": source.package,
                "name": source.module,
                "archive": source.archive,
                "module": str(made),
            }
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
