"""The CUDA 11.2.2 local repository as one `.deb`, in the form of NVIDIA's download.

Its installation adds a signed apt repository below /var and an apt source without a trusted key, so `apt-get update`
fails with NO_PUBKEY until the key beside the packages is trusted.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from lab.vendor import debian, packaging, standin
from lab.vendor.cuda_packages import HOME, PACKAGES, RELEASE, TOOLS, Package, Take
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import REPACKAGED, STAND_IN, Control, build_deb, link_or_copy

NAME = "cuda-repo-ubuntu2004-11-2-local"
VERSION = f"{RELEASE}-460.32.03-1"
FILE_NAME = f"{NAME}_{VERSION}_amd64.deb"
KEY_FILE = "7fa2af80.pub"  #: NVIDIA's name of the key file; the file has the lab's key
PIN_FILE = "cuda-ubuntu2004.pin"
ALTERNATIVES_PRIORITY = 112

_HERE = Path(__file__).parent
_RECIPE = tuple(_HERE / name for name in ("cuda.py", "cuda_packages.py", "packaging.py", "standin.py"))
_NVCC_PROFILE = _HERE / "src/cuda/nvcc.profile"
_DEBIAN_LIBS = "usr/lib/x86_64-linux-gnu"

#: maintainer scripts of the vendor's toolkit package
_TOOLKIT_SCRIPTS = {
    "postinst": f"""#!/bin/sh
set -e
if [ "$1" = configure ]; then
    update-alternatives --install /usr/local/cuda cuda /{HOME} {ALTERNATIVES_PRIORITY}
    update-alternatives --install /usr/local/cuda-11 cuda-11 /{HOME} {ALTERNATIVES_PRIORITY}
fi
""",
    "prerm": f"""#!/bin/sh
set -e
if [ "$1" = remove ]; then
    update-alternatives --remove cuda /{HOME}
    update-alternatives --remove cuda-11 /{HOME}
fi
""",
}
_PIN = """# Hostwright lab stand-in of NVIDIA's pin file
Package: *
Pin: release l=NVIDIA CUDA
Pin-Priority: 600
"""
_REPO_POSTINST = f"""#!/bin/sh
set -e
echo "The key of this repository is not trusted yet; it is /var/{NAME}/{KEY_FILE} (Hostwright lab stand-in)."
"""


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the local repository of `profile` into `out` if it is missing."""
    key = recipe_key(profile, (*_RECIPE, _NVCC_PROFILE))
    return build_once(out, "cuda", key, lambda work: _make(work, out.parent / "sources", profile))


def _make(work: Path, sources: Path, profile: Profile) -> list[VendorFile]:
    root = work / "root"
    repository = root / "var" / NAME
    repository.mkdir(parents=True)
    places = debian.trees(sources, _wanted(profile))
    taken: set[Path] = set()
    controls = {}
    for package in PACKAGES:
        tree = work / "tree"
        tree.mkdir()
        _stage(package, tree, places, profile, taken)
        control = _control(package, profile)
        scripts = _TOOLKIT_SCRIPTS if package.name == "cuda-toolkit-11-2" else None
        deb = build_deb(tree, control, repository, scripts)
        controls[deb.name] = packaging.control_of(deb)
        shutil.rmtree(tree)
    packaging.write_repository(repository, controls, origin="NVIDIA", label="NVIDIA CUDA")
    with packaging.signing_key("cudatools") as key:
        key.sign(repository)
        (repository / KEY_FILE).write_text(key.public())
        fingerprint = key.fingerprint()
    deb = _outer(root, work)
    shutil.rmtree(root)
    pin = work / PIN_FILE
    pin.write_text(_PIN)
    return [
        describe(
            deb,
            artifact="cuda-repository",
            version=VERSION,
            stand_in=True,
            note=_note(profile),
            fingerprint=fingerprint,
        ),
        describe(pin, artifact="cuda-pin", version=RELEASE, stand_in=True, note="the one rule that matters"),
    ]


def _wanted(profile: Profile) -> dict[str, set[str]]:
    """Return Debian package → tar patterns of the files that the repository's packages contain."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for take in package.takes:
            wanted[take.debian].add("./" + take.pattern.replace("**", "*"))  # tar's * crosses slashes
        for library in () if _stands_in(package, profile) else package.libraries:
            wanted[library.debian].add(f"./{_DEBIAN_LIBS}/{library.file_name}")
    return dict(wanted)


def _stands_in(package: Package, profile: Profile) -> bool:
    """Whether the package's libraries are stand-ins in this profile."""
    return package.math and profile is Profile.SMALL


def _stage(package: Package, tree: Path, places: dict[str, Path], profile: Profile, taken: set[Path]) -> None:
    """Copy the files of one package to `tree`, at their paths on a host."""
    for take in package.takes:
        for source, target in _matches(take, places[take.debian]):
            if source not in taken:
                taken.add(source)
                link_or_copy(source, tree / target)
    for library in package.libraries:
        target = tree / library.into / library.file_name
        if _stands_in(package, profile):
            note = f"{library.file_name} of CUDA {RELEASE}, without its code"
            standin.shared_object(target, library.soname_link, note)
        else:
            link_or_copy(places[library.debian] / _DEBIAN_LIBS / library.file_name, target)
        target.with_name(library.soname_link).symlink_to(library.file_name)
    for library in package.develops:
        link = tree / library.into / f"{library.stem}.so"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(library.soname_link)
    for name, stage in _EXTRAS.items():
        if name == package.name:
            stage(tree)


def _matches(take: Take, place: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file of `take` with its path on the host, sorted for reproducible builds."""
    top = place / take.pattern.removesuffix("/**")
    whole = take.pattern.endswith("/**")
    # A whole tree keeps its last directory name, except for the include directory, which becomes `into` itself.
    base = (top if top.name == "include" else top.parent) if whole else None
    for source in sorted(top.rglob("*") if whole else place.glob(take.pattern)):
        if source.is_symlink() or source.is_file():
            relative = source.relative_to(base) if base else Path(source.name)
            yield source, Path(take.into) / relative


def _control(package: Package, profile: Profile) -> Control:
    real = not (package.driver or package.meta or _stands_in(package, profile))
    return Control(
        package.name,
        package.version,
        package.summary,
        depends=", ".join(package.depends),
        stand_in=REPACKAGED if real else STAND_IN,
        more=(("Section", "multiverse/devel"), ("Priority", "optional")),
    )


def _compiler_extras(tree: Path) -> None:
    """Add nvcc.profile, in which nvcc finds its parts; Debian's file has Debian's paths."""
    shutil.copyfile(_NVCC_PROFILE, tree / HOME / "bin/nvcc.profile")


def _runtime_extras(tree: Path) -> None:
    """Add the `lib64` link to the target's libraries."""
    (tree / HOME / "lib64").symlink_to("targets/x86_64-linux/lib")


def _runtime_dev_extras(tree: Path) -> None:
    (tree / HOME / "include").symlink_to("targets/x86_64-linux/include")


def _toolkit_extras(tree: Path) -> None:
    versions = {"cuda": {"name": "CUDA SDK", "version": RELEASE}, "cuda_nvcc": {"name": "CUDA NVCC", "version": TOOLS}}
    path = tree / HOME / "version.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(versions, indent=3) + "\n")


_EXTRAS = {
    "cuda-nvcc-11-2": _compiler_extras,
    "cuda-cudart-11-2": _runtime_extras,
    "cuda-cudart-dev-11-2": _runtime_dev_extras,
    "cuda-toolkit-11-2": _toolkit_extras,
}


def _outer(root: Path, work: Path) -> Path:
    """Pack the repository and its apt source into the vendor's outer package."""
    source = root / "etc/apt/sources.list.d/cuda-ubuntu2004-11-2-local.list"
    source.parent.mkdir(parents=True)
    source.write_text(f"deb file:///var/{NAME} /\n")
    control = Control(
        NAME,
        VERSION,
        "cuda repository configuration files",
        stand_in=STAND_IN,
        more=(("Section", "multiverse/devel"), ("Priority", "optional")),
    )
    return build_deb(root, control, work, {"postinst": _REPO_POSTINST})


def _note(profile: Profile) -> str:
    if profile is Profile.FULL:
        return "NVIDIA's own CUDA 11.2.2 files, repackaged from Debian bullseye; driver packages are names only"
    return "NVIDIA's own nvcc, cudart, CUPTI and headers, repackaged; the math libraries are stand-ins"
