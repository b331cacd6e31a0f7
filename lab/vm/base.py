"""Root filesystem of virtual machines: a base image with kernel, initramfs, GRUB and shim."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from hostwright.common.errors import LabError
from hostwright.common.quoting import sh_file
from lab.image import ensure_programs
from lab.locking import locked
from lab.programs import run, run_logged
from lab.stack import packages_of_debian

#: name of a program that builds or runs virtual machines → Debian package
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "sfdisk": "fdisk",
    "mkfs.vfat": "dosfstools",
    "mcopy": "mtools",
    "mkfs.ext4": "e2fsprogs",
    "/usr/share/OVMF/OVMF_CODE_4M.fd": "ovmf",
}
#: packages that make a Debian root filesystem bootable, also with Secure Boot
PACKAGES = (
    *("linux-image-amd64", "initramfs-tools", "zstd"),
    *("grub2-common", "grub-efi-amd64-bin", "grub-efi-amd64-signed", "shim-signed", "mokutil"),
)
#: release and package version of the newest Debian 13 kernel for which Debian's driver R550 compiles. The files are
#: downloaded from Debian's archive by SHA-256, because indexes list only current kernels.
KERNEL, _VERSION = "6.12.94+deb13", "6.12.94-1"
KERNEL_FILES = {
    f"linux-signed-amd64/linux-image-{KERNEL}-amd64_{_VERSION}_amd64.deb": (
        "e38184e9aee8814cc12559abd10437ff2970c12cd01339e871b881abd9a5344e"
    ),
    f"linux/linux-headers-{KERNEL}-amd64_{_VERSION}_amd64.deb": (
        "cccbc5f3ad910054585eb0897e48a9ae55794349a9ba60d7a5e57beca0b4d7dc"
    ),
    f"linux/linux-headers-{KERNEL}-common_{_VERSION}_all.deb": (
        "1eeb2e7613cbf5cf3dad183e58aa7d36d090cdad5a63cb8278f8c0957d3b8111"
    ),
    f"linux/linux-kbuild-{KERNEL}_{_VERSION}_amd64.deb": (
        "3b9ac78989be3ba9ffcbccee881dd6697f9e62fd615b72b7516c2114ac79de3d"
    ),
}
_RECIPE = 1


def ensure_vm_base(base: Path, *, driver: bool = False) -> Path:
    """Return the root filesystem for virtual machines on the image ``base``. A missing root filesystem is built.

    With ``driver``, the filesystem also has Debian's NVIDIA driver, compiled on this machine. Raises `LabError` for
    another distribution than Debian 13.
    """
    missing = {name: package for name, package in TOOLS.items() if not Path(name).exists()}
    ensure_programs({name: package for name, package in missing.items() if not shutil.which(name)})
    distro = base.name.partition("-")[0]
    if driver and distro != "trixie":
        raise LabError(f"a virtual machine of {distro} cannot use real packages; use --distro trixie")
    key = hashlib.sha256(f"{_RECIPE} {base.name} {_script('', driver=driver)}".encode()).hexdigest()[:12]
    name = f"vm-packages-{distro}" if driver else f"vm-{distro}"
    made = base.with_name(f"{name}-{key}")
    with locked(f"image-{name}"):
        if not made.is_dir():
            minutes = "ten minutes" if driver else "a minute or two"
            print(f"lab: building the {distro} image of virtual machines ({minutes}, once)", file=sys.stderr)
            _build(base, made, made.with_name(f"{name}.log"), driver=driver)
    return made


def _script(root: str, *, driver: bool) -> str:
    if not driver:
        return sh_file(__file__, "sh/install.sh", root=root, packages=PACKAGES)
    files = tuple(word for pair in KERNEL_FILES.items() for word in pair)
    more = sh_file(__file__, "sh/driver.sh", root=root, files=files, packages=packages_of_debian())
    return sh_file(__file__, "sh/install.sh", root=root, packages=PACKAGES[1:]) + more


def _build(base: Path, made: Path, log: Path, *, driver: bool) -> None:
    root = made.with_name(f".building-{made.name}")
    shutil.rmtree(root, ignore_errors=True)
    try:
        run(["cp", "-a", "--reflink=auto", base, root])
        for old in base.parent.glob(f"{made.name.rpartition('-')[0]}-*"):
            _drop(old)
        shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
        script = _script(str(root), driver=driver)
        log.unlink(missing_ok=True)
        run_logged(["unshare", "--mount", "--pid", "--fork", "sh", "-euc", script], log)
        root.rename(made)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _drop(old: Path) -> None:
    if str(old) not in Path("/proc/self/mountinfo").read_text():
        shutil.rmtree(old)
