"""What is in a venv, as SBOMs name it: versions from the host, hashes of the wheels that pip takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from packaging.utils import canonicalize_name

from hostwright.plan.roles.software import Software
from hostwright.resources.python.hashes import wheel_hashes
from hostwright.resources.python.venv_audit import Dist, FoundVenv, same_version

INDEX = "Python Package Index"
#: what ``python -m venv`` itself puts there, at whatever version
BUNDLED = {"pip", "setuptools", "pkg-resources"}


def venv_software(requirement: str, pins: Mapping[str, str], wheels: str, python: str, venv: FoundVenv) -> Software:
    """The package that is asked for, with all others that are in the venv or should be."""
    hashes = wheel_hashes(wheels, python)
    found: dict[tuple[str, str], Software] = {}
    for dist in venv.dists:
        name = canonicalize_name(dist.name)
        package = _package(name, dist, pins.get(name, ""), hashes)
        found.setdefault((name, package.version), package)
    present = {name for name, _ in found}
    missing = [
        Software("pypi", name, "", version, brought=True) for name, version in pins.items() if name not in present
    ]
    packages = [found[key] for key in sorted(found)] + missing
    asked = canonicalize_name(requirement.partition("==")[0])
    main = next(package for package in packages if package.name == asked)
    return replace(main, parts=tuple(package for package in packages if package is not main))


def _package(name: str, dist: Dist, pin: str, hashes: Mapping[tuple[str, str], tuple[str, ...]]) -> Software:
    """One package, with the hashes of the wheels that pip can have taken, unless something has changed since."""
    right = bool(pin) and same_version(dist.version, pin)
    known = hashes.get((name, pin), ()) if right else ()
    added = "" if pin or name in BUNDLED else "not of the stack"
    return Software(
        "pypi", name, pin if right else dist.version, pin,
        flaw=dist.flaw.strip() or added,
        sha256=() if dist.flaw else known,
        brought=True,
        supplier=INDEX if known else "",
    )  # fmt: skip
