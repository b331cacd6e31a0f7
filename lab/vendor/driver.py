"""A stand-in of NVIDIA's `.run`: installer, libraries and a kernel module for emulated cards.

Options, refusals, order of steps, log and exit status are those of the 470.182.03 installer. The installed programs and
libraries read the lab host's emulated hardware and identify themselves as stand-ins.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lab.programs import run
from lab.vendor.model import Profile, VendorBuildError, VendorFile, build_once, describe, recipe_key
from lab.vendor.native import Compiler

#: drivers: the stack's, the branch's last one for upgrades, and the current stacks'
VERSION = "470.182.03"
UPGRADE = "470.256.02"
TODAY = "580.159.04"
VERSIONS = (VERSION, UPGRADE)

SOURCES = Path(__file__).parent / "src" / "driver"
_HEADER = Path("/usr/share/makeself/makeself-header.sh")
_LIBRARY_DIRECTORY = "/usr/lib/x86_64-linux-gnu"
#: fixed date of all archives, so that the same sources produce the same checksum
_DATE = "Fri Feb 24 00:00:00 UTC 2023"

#: libraries that only have to exist: stem → major version of the soname
_EMPTY_LIBRARIES = {
    "libnvidia-cfg": 1,
    "libnvidia-ptxjitcompiler": 1,
    "libnvidia-opencl": 1,
    "libnvidia-allocator": 1,
    "libnvidia-encode": 1,
    "libnvcuvid": 1,
    "libnvidia-compiler": None,
}
_NOTE = (
    "stand-in: the installer behaves as NVIDIA's and dkms really compiles its module; libcuda, libnvidia-ml and "
    "nvidia-smi are doubles that answer for made-up cards and cannot compute"
)


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the missing `.run` files of all versions into `out`."""
    sources = [path for path in SOURCES.rglob("*") if path.is_file()]
    sources += [Path(__file__), Path(__file__).with_name("native.py")]
    files: list[VendorFile] = []
    for version in (*VERSIONS, TODAY):
        key = recipe_key(profile, sources, version=version)
        files += build_once(out, f"driver-{version}", key, partial(_run_file, version))
    return files


def file_name(version: str) -> str:
    """Return the vendor's name of the file."""
    return f"NVIDIA-Linux-x86_64-{version}.run"


def _run_file(version: str, work: Path) -> list[VendorFile]:
    """Assemble the archive's directory and pack it."""
    archive = work / file_name(version).removesuffix(".run")
    for part in (archive, archive / "kernel", work / "native"):
        part.mkdir()
    installer(archive, version)
    _scripts(archive, version)
    _kernel(archive / "kernel", version)
    manifest = [
        *_programs(),
        *_libraries(archive, work / "native", version),
        *sources_of_kernel(archive, version),
    ]
    (archive / ".manifest").write_text("\n".join(manifest) + "\n")
    pack(work, archive, version, "hostwright stand-in")
    artifact = "driver" if version == VERSION else f"driver-{version}"
    return [describe(work / file_name(version), artifact=artifact, version=version, stand_in=True, note=_NOTE)]


def _fill(text: str, version: str) -> str:
    return text.replace("__VERSION", version)


def installer(archive: Path, version: str) -> None:
    """Concatenate the installer's parts; it installs the files listed in ``.manifest``."""
    parts = sorted((SOURCES / "installer").glob("*.sh"))
    (archive / "nvidia-installer").write_text(_fill("".join(part.read_text() for part in parts), version))
    (archive / "nvidia-installer").chmod(0o755)


def _scripts(archive: Path, version: str) -> None:
    """Write the programs that are scripts, and the data files."""
    (archive / "nvidia-modprobe").write_text(_fill((SOURCES / "nvidia-modprobe").read_text(), version))
    readme = f"Hostwright lab stand-in for the NVIDIA driver {version}. Nothing in it is NVIDIA's.\n"
    (archive / "README.txt").write_text(readme)
    (archive / "nvidia.icd").write_text("libnvidia-opencl.so.1\n")
    (archive / "nvidia-modprobe").chmod(0o755)


def _kernel(target: Path, version: str) -> None:
    """Copy the sources of the kernel modules and write the header with the version."""
    for source in (SOURCES / "kernel").iterdir():
        shutil.copyfile(source, target / source.name)
    (target / "nv-version.h").write_text(f'#define NV_VERSION_STRING "{version}"\n')


def _programs() -> Iterator[str]:
    """Yield the manifest lines of the programs and data files."""
    for name in ("nvidia-installer", "nvidia-modprobe", "nvidia-smi", "nvidia-persistenced"):
        yield f"file 755 {name} /usr/bin/{name}"
    yield "link nvidia-installer /usr/bin/nvidia-uninstall"
    yield "file 644 README.txt /usr/share/doc/NVIDIA_GLX-1.0/README.txt"
    yield "file 644 nvidia.icd /etc/OpenCL/vendors/nvidia.icd"


def _libraries(archive: Path, work: Path, version: str) -> Iterator[str]:
    """Compile the stand-in libraries into the archive; yield their manifest lines."""
    compiler = Compiler(work)
    defines = {"NV_VERSION": version}
    machine = SOURCES / "machine.c"
    smi = [SOURCES / name for name in ("nvidia-smi.c", "smi-csv.c", "smi-print.c")]
    shutil.move(compiler.program("nvidia-smi", smi, defines), archive)
    persistenced = [SOURCES / "persistenced.c", machine]
    shutil.move(compiler.program("nvidia-persistenced", persistenced, defines), archive)
    sources = {"libcuda": [SOURCES / "cuda.c", machine], "libnvidia-ml": [SOURCES / "nvml.c", machine]}
    for stem, major in {"libcuda": 1, "libnvidia-ml": 1, **_EMPTY_LIBRARIES}.items():
        name = f"{stem}.so.{version}"
        soname = f"{stem}.so.{major}" if major else name
        files = sources.get(stem, [SOURCES / "empty.c"])
        shutil.move(compiler.library(name, soname, files, {**defines, "SONAME": soname}), archive)
        yield from library(stem, version, linked=bool(major))


def library(stem: str, version: str, *, linked: bool = True) -> Iterator[str]:
    """Yield the manifest lines of a library and its links: ``.so`` → ``.so.1`` → the file."""
    name = f"{stem}.so.{version}"
    yield f"file 755 {name} {_LIBRARY_DIRECTORY}/{name}"
    if linked:
        yield f"link {name} {_LIBRARY_DIRECTORY}/{stem}.so.1"
        yield f"link {stem}.so.1 {_LIBRARY_DIRECTORY}/{stem}.so"


def sources_of_kernel(archive: Path, version: str) -> Iterator[str]:
    """Yield the manifest lines of the kernel sources for dkms; the installer fills in dkms.conf."""
    target = f"/usr/src/nvidia-{version}"
    for source in sorted(path for path in (archive / "kernel").rglob("*") if path.is_file()):
        name = source.relative_to(archive / "kernel")
        if name != Path("dkms.conf"):
            yield f"file 644 kernel/{name} {target}/{name}"
    yield f"file 644 kernel/dkms.conf.filled {target}/dkms.conf"


def pack(work: Path, archive: Path, version: str, remark: str) -> None:
    """Run makeself with a header that passes unknown options to the installer, as NVIDIA's does.

    The archive's label ends with ``remark``, which states the origin of its files.
    """
    header = work / "header.sh"
    header.write_text(_nvidia_header(_stock_header()))
    label = f"NVIDIA Accelerated Graphics Driver for Linux-x86_64 {version} ({remark})"
    options = [
        "--quiet",
        "--gzip",
        "--sha256",
        "--nox11",
        "--noprogress",
        "--packaging-date",
        _DATE,
        "--header",
        f"./{header.name}",
    ]
    same_everywhere = "--sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner"
    words = [*options, "--tar-extra", same_everywhere, archive.name, file_name(version), label, "./nvidia-installer"]
    run(["env", f"--chdir={work}", "makeself", *words])


def _stock_header() -> str:
    try:
        return _HEADER.read_text()
    except FileNotFoundError:
        raise VendorBuildError(f"{_HEADER} is missing; install the package makeself") from None


def _nvidia_header(stock: str) -> str:
    """Return makeself's header with the options of NVIDIA's installer.

    `-x` extracts; `-q`, `-h` and unknown options go to the installer. Raises `VendorBuildError` if a place to change is
    missing, as in another version of makeself.
    """
    changes = (
        (r"-\*\)\n\s*echo Unrecognized flag[^;]*;;", "-*)\n\tbreak ;;"),
        (r"-q \| --quiet\)", "--quiet)"),
        (r"-h \| --help\)", "--makeself-help)"),
        (r"\n\t--noexec\)\n", '\n\t-x | --extract-only)\n\tkeep=y\n\tscript=""\n\tshift\n\t;;\n\t--noexec)\n'),
        (r'echo " All good\."', 'echo " OK"'),
    )
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement.replace("\\", r"\\"), stock)
        if count != 1:
            raise VendorBuildError(f"{_HEADER}: {pattern!r} was expected once, found {count} times: unknown makeself")
        stock = text
    return stock
