"""A stand-in of NVIDIA's container toolkit: a signed apt repository, packages and programs.

The programs are `src/toolkit/*`. The repository has three versions, so that pins have an effect: the stacks' version,
their previous version, and one that NVIDIA has not published. It also has `nvidia-docker2`, an empty package today.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.vendor import packaging, standin
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import Control, build_deb

VERSION, FORMER, NEWER = "1.20.0", "1.17.8", "1.20.1"  #: the last one is made up
VERSIONS = (VERSION, FORMER, NEWER)
PINNED = f"{VERSION}-1"  #: the version that the stack pins
DIRECTORY = "apt/nvidia-container-toolkit"
KEY_FILE = "nvidia-container-toolkit.asc"
NOTE = "stand-in packages: configuration, hook, CDI and device links work, on the host's own driver files"
CDI_SINCE = (1, 18, 0)  #: first version with the units nvidia-cdi-refresh and with dependencies on an exact version

_HERE = Path(__file__).parent
_SOURCES = _HERE / "src/toolkit"
_RECIPE = (Path(__file__), Path(packaging.__file__), Path(standin.__file__))


@dataclass(frozen=True, slots=True)
class _Package:
    """One package: its files in `src/toolkit`, and its dependencies (`%s` is the upstream version)."""

    name: str
    summary: str
    depends: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)  #: path on the host → file in src/toolkit
    later: Mapping[str, str] = field(default_factory=dict)  #: files that only versions with the units have


def _programs(*names: str) -> dict[str, str]:
    return {f"usr/bin/{name}": name for name in names}


_UNITS = ("nvidia-cdi-refresh.path", "nvidia-cdi-refresh.service")
#: as dh_systemd does in the vendor's package: both units are enabled and started; a unit that fails to start does not
#: fail the installation
_POSTINST = f"""#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload || true
  systemctl enable -q {" ".join(_UNITS)} || true
  systemctl start {_UNITS[0]} || true
  systemctl start --no-block {_UNITS[1]} || true
fi
"""

#: the visible effects of debhelper's scripts for units; the directory stays if other stand-ins have files in it
_POSTRM = f"""#!/bin/sh
set -e
if [ "$1" = purge ]; then
  for unit in {" ".join(_UNITS)}; do rm -f /etc/systemd/system/*.wants/"$unit"; done
  rm -rf /usr/share/hostwright/toolkit
  rmdir /usr/share/hostwright 2>/dev/null || true
fi
"""

# NVIDIA's dependencies between the packages are ">=" before 1.18 and "=" from 1.18 on. If only one package is pinned to
# an old version, apt installs the others at the newest version, or fails. So all four must be pinned.
_PACKAGES = (
    _Package("libnvidia-container1", "NVIDIA container runtime library", ("libc6",)),
    _Package(
        "libnvidia-container-tools",
        "NVIDIA container runtime library (command-line tools)",
        ("libnvidia-container1 (>= %s-1)", "python3"),
        _programs("nvidia-container-cli"),
    ),
    _Package(
        "nvidia-container-toolkit-base",
        "NVIDIA Container Toolkit Base",
        ("python3",),
        {
            **_programs("nvidia-ctk", "nvidia-container-runtime", "nvidia-cdi-hook"),
            "etc/nvidia-container-runtime/config.toml": "config.toml",
            "usr/share/hostwright/toolkit/cdi.py": "cdi",
        },
        {
            **{f"lib/systemd/system/{name}": name for name in _UNITS},
            "etc/nvidia-container-toolkit/nvidia-cdi-refresh.env": "nvidia-cdi-refresh.env",
        },
    ),
    _Package(
        "nvidia-container-toolkit",
        "NVIDIA Container toolkit",
        ("nvidia-container-toolkit-base (= %s-1)", "libnvidia-container-tools (@ %s-1)", "python3"),
        _programs("nvidia-container-runtime-hook"),
    ),
)


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the repository and its key into `out` if they are missing."""
    key = recipe_key(profile, (*_RECIPE, *_SOURCES.iterdir()))
    return build_once(out, "toolkit", key, _make)


def _make(work: Path) -> list[VendorFile]:
    repository = work / DIRECTORY
    repository.mkdir(parents=True)
    debs = [_deb(package, version, work / "tree", repository) for version in VERSIONS for package in _PACKAGES]
    debs.append(_former(work / "tree", repository))
    controls = {deb.name: packaging.control_of(deb) for deb in debs}
    packaging.write_repository(repository, controls, origin="NVIDIA", label="libnvidia-container stable")
    with packaging.signing_key("NVIDIA container toolkit") as key:
        key.sign(repository)
        (work / KEY_FILE).write_text(key.public())
        fingerprint = key.fingerprint()
    return [
        describe(
            repository,
            name=DIRECTORY,
            artifact="container-toolkit",
            version=PINNED,
            stand_in=True,
            note=NOTE,
            fingerprint=fingerprint,
        ),
        describe(
            work / KEY_FILE,
            artifact="container-toolkit-key",
            version=PINNED,
            stand_in=True,
            note="the key of the stand-in repository",
            fingerprint=fingerprint,
        ),
    ]


def _deb(package: _Package, version: str, tree: Path, repository: Path) -> Path:
    tree.mkdir()
    with_units = tuple(map(int, version.split("."))) >= CDI_SINCE
    for path, source in {**package.files, **(package.later if with_units else {})}.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((_SOURCES / source).read_text().replace("@VERSION@", version))
        target.chmod(0o755 if path.startswith("usr/bin/") else 0o644)
    scripts = {"postinst": _POSTINST, "postrm": _POSTRM} if with_units and package.later else {}
    if package.name == "libnvidia-container1":
        scripts["triggers"] = (
            "activate-noawait ldconfig\n"  # as in every library package; otherwise nothing updates the linker cache
        )
        library = tree / f"usr/lib/x86_64-linux-gnu/libnvidia-container.so.{version}"
        standin.shared_object(library, "libnvidia-container.so.1", f"libnvidia-container {version}")
        library.with_name("libnvidia-container.so.1").symlink_to(library.name)
    depends = ", ".join(package.depends).replace("%s", version).replace("@", "=" if with_units else ">=")
    deb = build_deb(tree, Control(package.name, f"{version}-1", package.summary, depends), repository, scripts)
    shutil.rmtree(tree)
    return deb


def _former(tree: Path, repository: Path) -> Path:
    """Build the last `nvidia-docker2`, which no longer writes a daemon.json."""
    tree.mkdir()
    depends = "nvidia-container-toolkit (>= 1.14.0-1)"
    control = Control("nvidia-docker2", "2.14.0-1", "NVIDIA Container Toolkit meta-package", depends, "all")
    deb = build_deb(tree, control, repository)
    shutil.rmtree(tree)
    return deb
