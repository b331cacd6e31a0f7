"""CUDA toolkits found on a host, whether or not Hostwright installed them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hostwright.resources import named_like
from hostwright.roles import OTHER, Adopted, Finder, FoundValues, OnHost, Pattern, series, sh_file
from hostwright.standard.roles.cuda.section import CudaRelease, CudaSection

_NUMBER = Pattern(r"[0-9]{1,3}(?:\.[0-9]{1,9}){1,3}")
_PLACE = Pattern(r".*/cuda-([0-9]{1,2}\.[0-9]{1,2})")


def _values(host: OnHost) -> FoundValues:
    for place, version, packaged in toolkits(host):
        yield place, f"{version or 'of unknown version'}{'' if packaged else ', of no package'}"


def toolkits(host: OnHost) -> Iterator[tuple[str, str, bool]]:
    """Yield directory, version and presence of packages for each toolkit on the host."""
    for place, *cells in host.all("toolkit"):
        named = _PLACE.fullmatch(place)
        found = _NUMBER.search(cells[0]) if cells else None
        version = found[0] if found else named[1] if named else ""
        yield place, version, _packaged(host, series(version))


def _packaged(host: OnHost, of: str) -> bool:
    dashed = of.replace(".", "-")
    names = (f"cuda-toolkit-{dashed}", f"cuda-nvcc-{dashed}", f"cuda-cudart-{dashed}", "nvidia-cuda-toolkit")
    return any(named_like(name, names) for name in host.debs)


def _adopted(host: OnHost, section: CudaSection) -> Adopted:
    found = list(toolkits(host))
    if not found:
        return Adopted(left_out="the host has no toolkit", unlike=OTHER)
    if _has(host, section):
        data: dict[str, Any] = dict(_components(host, section))
        of_beside = {name: _components(host, one) if _has(host, one) else None for name, one in section.beside.items()}
        if beside := {name: parts for name, parts in of_beside.items() if parts != {}}:
            data["beside"] = beside
        return Adopted(data, unlike=1) if data else Adopted()
    places = ", ".join(f"{version} in {place}" for place, version, _ in found)
    return Adopted(left_out=f"{places} did not come from the packages of {section.version}, and is kept", unlike=OTHER)


def _has(host: OnHost, toolkit: CudaRelease) -> bool:
    return host.debs.get(toolkit.package) == toolkit.package_version


def _components(host: OnHost, toolkit: CudaRelease) -> dict[str, Any]:
    there = {name: host.debs.get(name) for name in toolkit.components}
    differing = {name: there[name] for name, version in toolkit.components.items() if there[name] != version}
    return {"components": differing} if differing else {}


FOUND = Finder(_values, sh_file(__file__, "found.sh"), adopted=_adopted)
