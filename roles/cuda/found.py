"""Every CUDA toolkit of a host, whoever installed it."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import named_like
from hostwright.roles import OTHER, Adopted, Finder, FoundValues, OnHost, Pattern, series, sh_file
from hostwright.standard.roles.cuda.section import CudaSection

_NUMBER = Pattern(r"[0-9]{1,3}(?:\.[0-9]{1,9}){1,3}")
_PLACE = Pattern(r".*/cuda-([0-9]{1,2}\.[0-9]{1,2})")


def _values(host: OnHost) -> FoundValues:
    for place, version, packaged in toolkits(host):
        yield place, f"{version or 'of unknown version'}{'' if packaged else ', of no package'}"


def toolkits(host: OnHost) -> Iterator[tuple[str, str, bool]]:
    """The directory of each toolkit, its version, and whether packages brought it."""
    for place, *cells in host.all("toolkit"):
        named = _PLACE.fullmatch(place)
        found = _NUMBER.search(cells[0]) if cells else None
        version = found[0] if found else named[1] if named else ""
        yield place, version, _packaged(host, series(version))


def _packaged(host: OnHost, of: str) -> bool:
    """Whether a package of the toolkit's series is installed: its compiler, its runtime, or Debian's own."""
    dashed = of.replace(".", "-")
    names = (f"cuda-toolkit-{dashed}", f"cuda-nvcc-{dashed}", f"cuda-cudart-{dashed}", "nvidia-cuda-toolkit")
    return any(named_like(name, names) for name in host.debs)


def _adopted(host: OnHost, section: CudaSection) -> Adopted:
    found = list(toolkits(host))
    if not found:
        return Adopted(left_out="the host has no toolkit", unlike=OTHER)
    if host.debs.get(section.package) == section.package_version:
        there = {name: host.debs.get(name) for name in section.components}
        components = {name: there[name] for name, version in section.components.items() if there[name] != version}
        return Adopted({"components": components}, unlike=1) if components else Adopted()
    places = ", ".join(f"{version} in {place}" for place, version, _ in found)
    return Adopted(
        left_out=f"{places} did not come from the packages of {section.version}, and stays as it is", unlike=OTHER
    )


FOUND = Finder(_values, sh_file(__file__, "found.sh"), adopted=_adopted)
