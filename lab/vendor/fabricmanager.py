"""A stand-in of the Fabric Manager package: it checks NVSwitches and the driver's version, and manages nothing."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from lab.vendor.driver import VERSION, VERSIONS
from lab.vendor.model import Profile, VendorFile, build_once, describe, recipe_key
from lab.vendor.packaging import Control, build_deb

PACKAGE = "nvidia-fabricmanager-470"
_SOURCES = Path(__file__).parent / "src" / "fabricmanager"
_PLACES = {
    "nv-fabricmanager": "usr/bin/nv-fabricmanager",
    "nvidia-fabricmanager.service": "lib/systemd/system/nvidia-fabricmanager.service",
    "fabricmanager.cfg": "usr/share/nvidia/nvswitch/fabricmanager.cfg",
}
#: as in the vendor's package: systemd loads the unit, which is neither enabled nor started
_POSTINST = "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi\n"


def build(out: Path, profile: Profile) -> list[VendorFile]:
    """Build the missing packages of all driver versions into `out`."""
    sources = [*(_SOURCES / name for name in _PLACES), Path(__file__)]
    files: list[VendorFile] = []
    for version in VERSIONS:
        key = recipe_key(profile, sources, version=version)
        files += build_once(out, f"fabricmanager-{version}", key, partial(_package, version))
    return files


def _package(version: str, work: Path) -> list[VendorFile]:
    tree = work / "tree"
    for name, place in _PLACES.items():
        target = tree / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text((_SOURCES / name).read_text().replace("__VERSION", version))
    (tree / _PLACES["nv-fabricmanager"]).chmod(0o755)
    summary = "Fabric Manager for NVSwitch based systems (hostwright stand-in)"
    deb = build_deb(tree, Control(PACKAGE, f"{version}-1", summary), work, {"postinst": _POSTINST})
    shutil.rmtree(tree)
    artifact = "fabric-manager" if version == VERSION else f"fabric-manager-{version}"
    note = "stand-in: compares versions and counts made-up NVSwitches as the vendor's does, manages nothing"
    return [describe(deb, artifact=artifact, version=f"{version}-1", stand_in=True, note=note)]
