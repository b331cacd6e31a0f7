"""NVIDIA driver found on a host, from any source: version, source, kind of kernel module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hostwright.resources import named_like
from hostwright.roles import OTHER, Adopted, Finder, FoundValues, OnHost, Pattern, distance, sh_file
from hostwright.standard.roles.driver.modules import kinds_of
from hostwright.standard.roles.driver.section import DRIVER_PACKAGES, NOT_DRIVER, OPEN_PACKAGES, DriverSection

_VERSION = Pattern(r"[1-9][0-9]{2}(?:\.[0-9]{1,6}){1,3}")
_PRECOMPILED = Pattern(r"(linux-modules-nvidia-[0-9]{3}(?:-server)?(?:-open)?)-[0-9].*")
_FABRIC = ("nvidia-fabricmanager*",)
_MANAGER, _IMEX = (Pattern(rf"{name}(?:-[0-9]{{3}})?") for name in ("nvidia-fabricmanager", "nvidia-imex"))
_SUBNET = Pattern("nvlsm")
_DEBIANS = "nvidia-alternative"  #: name of the package that only Debian's own driver has
#: name patterns of packages that only Debian's driver needs
_BESIDE = ("firmware-nvidia-*", "nvidia-support")
#: URLs of NVIDIA's ``.run`` files, with fields for the version and the file name
_RUNFILES = (
    "https://us.download.nvidia.com/tesla/{version}/{file}",
    "https://us.download.nvidia.com/XFree86/Linux-x86_64/{version}/{file}",
)


def _values(host: OnHost) -> FoundValues:
    version, loaded = version_of(host), _clean(host.first("loaded"))
    if not version:
        return
    yield "version", version
    if source := source_of(host):
        yield "source", source
    if kind := kind_of(host):
        yield "module", kind
    if loaded != version:
        yield "loaded", loaded or "none"
    for name in sorted(name for name in host.debs if named_like(name, _FABRIC)):
        yield "fabric manager", host.debs[name]


def version_of(host: OnHost) -> str:
    """Return the version of the host's driver, from the libraries, else from the loaded module; empty without a
    driver.
    """
    libraries = [version for (version, *_) in host.all("library") if _clean(version)]
    loaded = _clean(host.first("loaded"))
    return loaded if loaded in libraries or not libraries else libraries[0]


def packages_of(host: OnHost) -> Mapping[str, str]:
    """Return name → version of the driver's installed packages."""
    theirs = (name for name in sorted(host.debs) if named_like(name, DRIVER_PACKAGES))
    return {name: host.debs[name] for name in theirs if not named_like(name, NOT_DRIVER)}


def source_of(host: OnHost) -> str:
    """Return the source of the host's driver, ``packages`` or ``runfile``; empty if unknown."""
    if packages_of(host):
        return "packages"
    return "runfile" if host.all("installer") else ""


def kind_of(host: OnHost) -> str:
    """Return the kind of the loaded kernel module, else of the packaged module: ``open`` or ``proprietary``.

    Returns an empty text if both are unknown.
    """
    text = host.first("kernel")
    if "Kernel Module" in text:
        return "open" if "Open Kernel Module" in text else "proprietary"
    packages = packages_of(host)
    if not packages:
        return ""
    return "open" if any(named_like(name, OPEN_PACKAGES) for name in packages) else "proprietary"


def precompiled_of(host: OnHost) -> str:
    """Return the name prefix of packages with a precompiled module, without the kernel release; empty without
    packages.
    """
    names = (match[1] for name in sorted(packages_of(host)) if (match := _PRECOMPILED.fullmatch(name)))
    return next(names, "")


def _adopted(host: OnHost, section: DriverSection) -> Adopted:
    version, source = version_of(host), source_of(host)
    if not version:
        return Adopted(left_out="the host has no driver", unlike=OTHER)
    if not source:
        sentence = f"{version} is there, and neither its packages nor its installer are"
        return Adopted(left_out=sentence, unlike=max(distance(version, section.version), 1))
    there = _packaged(host, section) if source == "packages" else _from_runfile(host, section)
    if version != section.version:
        there |= {"version": version, "kernels": None, **_parts(host, version, packaged=source == "packages")}
    differs = {name: value for name, value in there.items() if (value or None) != (getattr(section, name) or None)}
    if not differs:
        return Adopted()
    unmanaged = [
        name
        for name in sorted(host.debs)
        if named_like(name, _FABRIC) and "fabric_manager" in differs and not differs["fabric_manager"]
    ]
    notes = [f"{name} {host.debs[name]} is kept, and the role driver does not manage it" for name in unmanaged]
    artifacts = {}
    if differs.get("artifact") or (source == "runfile" and "version" in differs):
        differs["artifact"], artifacts = "driver", {"driver": _runfile(version)}
        notes.append(f"no stack has a checksum for the driver's .run {version}: the first downloaded file is pinned")
    if "packages" in differs:
        differs["packages"] = {**dict.fromkeys(section.packages), **differs["packages"]}
    return Adopted(differs, artifacts, max(distance(version, section.version), 1), notes=tuple(notes))


def _packaged(host: OnHost, section: DriverSection) -> dict[str, Any]:
    of_kernels = ("linux-modules-nvidia-*", "linux-objects-nvidia-*", "linux-signatures-nvidia-*")
    packages = {name: text for name, text in packages_of(host).items() if not named_like(name, of_kernels)}
    packages |= {
        name: text for name, text in host.debs.items() if named_like(name, _BESIDE) or name in section.packages
    }
    own: dict[str, Any] = {
        "artifact": None,
        "packages": packages,
        "precompiled": precompiled_of(host),
        "module": "auto",
    }
    own |= {"repository": None} if _DEBIANS in packages else {"components": ()}
    return own | ({"module": kind_of(host)} if section.module == kind_of(host) else {})


def _parts(host: OnHost, version: str, *, packaged: bool) -> dict[str, Any]:
    manager, imex, subnet = (_part(host, pattern) if packaged else None for pattern in (_MANAGER, _IMEX, _SUBNET))
    ours = [part if part and part["version"].startswith(f"{version}-") else None for part in (manager, imex)]
    return {"fabric_manager": ours[0] and {**ours[0], "subnet_manager": subnet}, "imex": ours[1]}


def _part(host: OnHost, pattern: Pattern) -> dict[str, Any] | None:
    name = next((name for name in sorted(host.debs) if pattern.fullmatch(name)), "")
    return {"package": name, "version": host.debs[name], "artifact": None} if name else None


def _from_runfile(host: OnHost, section: DriverSection) -> dict[str, Any]:
    kind, kinds = kind_of(host), kinds_of(version_of(host))
    module = kind if kind and len(kinds) > 1 else "auto"
    no_packages: dict[str, Any] = {"packages": {}, "precompiled": None, "components": (), "repository": None}
    return {"artifact": section.artifact or "driver", "module": module, **no_packages}


def _runfile(version: str) -> Mapping[str, Any]:
    file = f"NVIDIA-Linux-x86_64-{version}.run"
    return {"file": file, "urls": [url.format(version=version, file=file) for url in _RUNFILES], "sha256": None}


def _clean(text: str) -> str:
    return text if _VERSION.fullmatch(text) else ""


FOUND = Finder(_values, sh_file(__file__, "found.sh"), adopted=_adopted)
