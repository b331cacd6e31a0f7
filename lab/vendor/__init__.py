"""Vendor files, built on this machine: real bytes if a public package index has them, else labelled stand-ins.

Each builder is a module with `build(out, profile) -> list[VendorFile]`. A builder does nothing if the files of its
current recipe exist. An interrupted build leaves nothing that counts as built.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import chain
from pathlib import Path

from hostwright.common.errors import HostwrightError
from lab.config import cache_directory
from lab.image import ensure_tools
from lab.locking import locked
from lab.vendor import repackaged
from lab.vendor.model import Profile, VendorFile, read_manifest, write_manifest

__all__ = ["BUILDERS", "Profile", "VendorFile", "build", "build_real", "read_manifest"]

Builder = Callable[[Path, Profile], list[VendorFile]]

#: modules in start order: the two long downloads first, because all others run beside them
BUILDERS: tuple[str, ...] = (
    "cuda",
    "wheels",
    "driver",
    "fabricmanager",
    "headers",
    "cudnn",
    "nccl",
    "tensorrt",
    "toolkit",
    "smoke",
    "interpreter",
)
WORKERS = 2  #: one waits for the network while the other unpacks


def build(profile: Profile | str, cache: Path) -> Path:
    """Build the missing vendor files of `profile` below `cache`; return their directory.

    Builds of the same profile run one after the other. Raises `LabError` with the last lines of a failed program.
    """
    chosen = Profile(profile)
    ensure_tools()
    out = cache / "vendor" / chosen
    out.mkdir(parents=True, exist_ok=True)
    with locked(f"vendor-{chosen}"), ThreadPoolExecutor(WORKERS) as pool:
        built = pool.map(lambda name: _builder(name)(out, chosen), BUILDERS)
        write_manifest(out, chosen, chain.from_iterable(built))
    return out


def build_real(what: str, cache: Path) -> tuple[VendorFile, Path]:
    """Build NVIDIA's own driver or cuDNN (`what`) below `cache` if it is missing; return the file and its directory.

    These files are built on request only: cuDNN is a download of 0.7 GB, and the driver's module compiles for four
    minutes.
    """
    ensure_tools()
    out = cache / "vendor" / "real"
    out.mkdir(parents=True, exist_ok=True)
    with locked("vendor-real"):
        file: VendorFile = import_module(f"{__name__}.real_{what}").build(out)
    return file, out


def build_repackaged(profile: str, versions: Iterable[str], cache: Path) -> tuple[VendorFile, Path]:
    """Build the repository of these drivers below `cache` if it is missing; return its key and the key's directory.

    Hosts of the profile have it beside the vendor's other repositories.
    """
    out = cache / "vendor" / profile
    with locked(f"vendor-{profile}"):
        return repackaged.build(out, versions), out


def _builder(name: str) -> Builder:
    """Import one builder module; imports happen only during a build."""
    found: Builder = import_module(f"{__name__}.{name}").build
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the vendor files from the command line (`python -m lab.vendor`) and list them."""
    parser = argparse.ArgumentParser(prog="python -m lab.vendor", description="Build the lab's vendor files.")
    parser.add_argument("--profile", choices=[each.value for each in Profile], default=Profile.FULL.value)
    parser.add_argument("--cache", type=Path, default=cache_directory(), help="default: %(default)s")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        print("lab: the build requires root; run `python -m lab build`, which uses sudo", file=sys.stderr)
        return 1
    try:
        out = build(options.profile, options.cache)
    except HostwrightError as error:
        print(f"lab: {error}", file=sys.stderr)
        return error.exit_status
    for file in read_manifest(out)[1]:
        kind = "stand-in" if file.stand_in else "real"
        print(f"{kind:9} {file.size / 1e6:9.1f} MB  {file.name}\n          {file.note}")
    return 0
