"""Drivers that no public index carries: NVIDIA's files of Debian's branch, under the names and versions of another.

Names and layout are those of NVIDIA's network repository for Debian, for computing alone. Every package says what its
files are, and so does the module (`modinfo -F repackaged nvidia`). The version is changed in the module's sources and
in names of files; everything else, maintainer scripts too, is as Debian has it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lab.programs import run
from lab.vendor import debian, packaging
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import Control, build_deb

SUITE, COMPONENTS = "trixie", "contrib non-free non-free-firmware"
DIRECTORY, KEY_FILE, ARTIFACT = "apt/nvidia-driver", "nvidia-driver.asc", "driver-key"
PINNING, FIRST = "nvidia-driver-pinning-", 580  #: the package of preferences, and the first branch that has it
#: the directories in which Debian keeps several drivers side by side → NVIDIA's
_PLACES = {
    "usr/lib/x86_64-linux-gnu/nvidia/current/": "usr/lib/x86_64-linux-gnu/",
    "usr/lib/nvidia/current/nvidia-smi": "usr/bin/nvidia-smi",
    "etc/nvidia/current-open/nvidia-options.conf": "usr/lib/modprobe.d/nvidia-options.conf",
    "etc/nvidia/current-open/nvidia-blacklists-nouveau.conf": "usr/lib/modprobe.d/nvidia-blacklists-nouveau.conf",
}
#: documents, the init script beside the unit, what loads modules by Debian's names for them
_LEFT_OUT = re.compile(r"DEBIAN/|usr/share/|.*\.gz$|etc/init\.d/|etc/nvidia/[^/]*$|.*/nvidia-(load|modprobe)\.conf$")
_NAMES_THE_VERSION = re.compile(r".*/(Kbuild|dkms\.conf|nvidia-options\.conf)")
#: text in the module's source after which a line is added, and that text with the added line
_INFO, _SAYS = "MODULE_VERSION(NV_VERSION_STRING);", '{0}\nMODULE_INFO(repackaged, "{1}");'


@dataclass(frozen=True, slots=True)
class _Package:
    """A package of NVIDIA's repository, and Debian's with its files; `%s` in its dependencies is its version."""

    name: str
    of_debian: str
    depends: str = "libc6"
    scripts: tuple[str, ...] = ()  #: Debian's maintainer scripts that fit


PACKAGES = (
    _Package("libcuda1", "libcuda1", "libc6, libnvidia-ptxjitcompiler1 (= %s)", ("triggers",)),
    _Package("libnvidia-ml1", "libnvidia-ml1", scripts=("triggers",)),
    _Package("libnvidia-cfg1", "libnvidia-cfg1", scripts=("triggers",)),
    _Package("libnvidia-ptxjitcompiler1", "libnvidia-ptxjitcompiler1", scripts=("triggers",)),
    _Package("nvidia-driver-cuda", "nvidia-smi", "libcuda1 (= %s), libnvidia-ml1 (= %s)"),
    _Package("firmware-nvidia-gsp", "firmware-nvidia-gsp", ""),
    _Package("nvidia-modprobe", "nvidia-modprobe"),
    _Package("nvidia-kernel-support", "nvidia-open-kernel-support", "nvidia-modprobe (= %s)"),
    _Package(
        "nvidia-kernel-open-dkms",
        "nvidia-open-kernel-dkms",
        "dkms, firmware-nvidia-gsp (= %s), nvidia-kernel-support (= %s)",
        ("postinst", "prerm"),
    ),
    _Package(
        "nvidia-persistenced",
        "nvidia-persistenced",
        "libc6, adduser, libnvidia-cfg1 (= %s), libtirpc3t64 | libtirpc3",
        ("postinst", "prerm", "postrm"),
    ),
)


def names(version: str) -> dict[str, str]:
    """Return the set of a driver's packages: name → version."""
    return dict.fromkeys((f"{PINNING}{version}", *(package.name for package in PACKAGES)), f"{version}-1")


def build(out: Path, versions: Iterable[str]) -> VendorFile:
    """Build the repository with these drivers and its key into `out`, unless they are there; return the key.

    Its note is the label: what the files are.
    """
    wanted = sorted(set(versions))
    key = recipe_key(Profile.FULL, (Path(__file__), Path(packaging.__file__)), versions=" ".join(wanted))
    return build_once(out, "repackaged", key, partial(_make, wanted))[0]


def _make(versions: Iterable[str], work: Path) -> list[VendorFile]:
    repository, fetched = work / DIRECTORY, work / "fetched"
    for directory in (repository, fetched):
        directory.mkdir(parents=True)
    debian.fetch(fetched, [package.of_debian for package in PACKAGES], SUITE, COMPONENTS)
    (library,) = fetched.glob("libcuda1_*.deb")
    real = library.name.split("_")[1].partition("-")[0]
    label = f"repackaged: the files are {real}'s"
    debs = [deb for version in versions for deb in _set(fetched, repository, version, real, label)]
    shutil.rmtree(fetched)
    controls = {deb.name: packaging.control_of(deb) for deb in debs}
    packaging.write_repository(repository, controls, origin="NVIDIA", label=label)
    with packaging.signing_key("NVIDIA driver") as key:
        key.sign(repository)
        (work / KEY_FILE).write_text(key.public())
        fingerprint = key.fingerprint()
    parts = ((KEY_FILE, ARTIFACT), (DIRECTORY, "driver-repository"))
    return [
        describe(
            work / name, name=name, artifact=part, version=real, stand_in=True, note=label, fingerprint=fingerprint
        )
        for name, part in parts
    ]


def _set(fetched: Path, repository: Path, version: str, real: str, label: str) -> Iterator[Path]:
    """Pack all packages of one driver."""

    def renamed(text: str) -> str:
        return text.replace("nvidia-current-open", "nvidia").replace(real, version)

    raw, tree = repository.parent / "raw", repository.parent / "tree"
    for package in PACKAGES:
        (deb,) = fetched.glob(f"{package.of_debian}_*.deb")
        run(["dpkg-deb", "--raw-extract", deb, raw])
        scripts = {name: renamed((raw / "DEBIAN" / name).read_text()) for name in package.scripts}
        _rearrange(raw, tree, renamed, label)
        what = run(["dpkg-deb", "--field", deb, "Description"]).splitlines()[0]
        depends = package.depends.replace("%s", f"{version}-1")
        control = Control(package.name, f"{version}-1", f"{what} ({label})", depends, stand_in=label)
        yield build_deb(tree, control, repository, scripts)
        for directory in (raw, tree):
            shutil.rmtree(directory)
    pin = tree / f"etc/apt/preferences.d/{PINNING}{version}"
    pin.parent.mkdir(parents=True)
    covered = " ".join(package.name for package in PACKAGES)
    pin.write_text(f"Package: {covered}\nPin: version {version}*\nPin-Priority: 1000\n")
    control = Control(pin.name, f"{version}-1", f"Pin for NVIDIA's driver {version} ({label})", stand_in=label)
    yield build_deb(tree, control, repository)
    shutil.rmtree(tree)


def _rearrange(raw: Path, tree: Path, renamed: Callable[[str], str], label: str) -> None:
    """Move the files of Debian's package to where NVIDIA's has them, and change the version in the module's sources."""
    for file in [path for path in raw.rglob("*") if path.is_symlink() or path.is_file()]:
        name = str(file.relative_to(raw))
        if _LEFT_OUT.match(name):
            continue
        place = next((there + name.removeprefix(here) for here, there in _PLACES.items() if name.startswith(here)), "")
        target = tree / renamed(place or name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if file.is_symlink():
            target.symlink_to(renamed(str(file.readlink())))
            continue
        if _NAMES_THE_VERSION.fullmatch(name):
            file.write_text(renamed(file.read_text()))
        elif name.endswith("/nvidia/nv.c"):
            said = _SAYS.format(_INFO, label.removeprefix("repackaged: "))
            file.write_text(file.read_text().replace(_INFO, said))
        file.rename(target)
