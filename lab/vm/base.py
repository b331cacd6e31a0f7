"""The root filesystem of virtual machines: a base image, with a kernel, an initramfs, GRUB and shim of its own."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from hostwright.common.quoting import sh_file
from lab.image import ensure_programs
from lab.locking import locked
from lab.programs import run, run_logged

#: program → package, for what makes and runs virtual machines on this machine.
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "sfdisk": "fdisk",
    "mkfs.vfat": "dosfstools",
    "mcopy": "mtools",
    "mkfs.ext4": "e2fsprogs",
    "/usr/share/OVMF/OVMF_CODE_4M.fd": "ovmf",
}
#: What makes a Debian root filesystem bootable by itself, also where the firmware asks for signatures.
PACKAGES = (
    *("linux-image-amd64", "initramfs-tools", "zstd"),
    *("grub2-common", "grub-efi-amd64-bin", "grub-efi-amd64-signed", "shim-signed", "mokutil"),
)
_RECIPE = 1


def ensure_vm_base(base: Path) -> Path:
    """Return the root filesystem of virtual machines that is made from the image ``base``; make it if missing."""
    missing = {name: package for name, package in TOOLS.items() if not Path(name).exists()}
    ensure_programs({name: package for name, package in missing.items() if not shutil.which(name)})
    install = sh_file(__file__, "sh/install.sh", root="", packages=PACKAGES)
    key = hashlib.sha256(f"{_RECIPE} {base.name} {install}".encode()).hexdigest()[:12]
    distro = base.name.partition("-")[0]
    made = base.with_name(f"vm-{distro}-{key}")
    with locked(f"image-vm-{distro}"):
        if not made.is_dir():
            print(f"lab: building the {distro} image of virtual machines (a minute or two, once)", file=sys.stderr)
            _build(base, made, made.with_name(f"vm-{distro}.log"))
    return made


def _build(base: Path, made: Path, log: Path) -> None:
    root = made.with_name(f".building-{made.name}")
    shutil.rmtree(root, ignore_errors=True)
    try:
        run(["cp", "-a", "--reflink=auto", base, root])
        for old in base.parent.glob(f"{made.name.rpartition('-')[0]}-*"):
            _drop(old)
        shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
        script = sh_file(__file__, "sh/install.sh", root=str(root), packages=PACKAGES)
        log.unlink(missing_ok=True)
        run_logged(["unshare", "--mount", "--pid", "--fork", "sh", "-euc", script], log)
        root.rename(made)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _drop(old: Path) -> None:
    """Delete a former image, unless a host's disk is being made from it: then it is mounted."""
    if str(old) not in Path("/proc/self/mountinfo").read_text():
        shutil.rmtree(old)
