"""The container engine of a host and NVIDIA's container toolkit, whoever installed them."""

from __future__ import annotations

from typing import Any

from hostwright.roles import OTHER, Adopted, Finder, FoundValues, OnHost, distance, sh_file
from hostwright.standard.roles.container.section import ContainerSection

#: packages of engines, with the program that each brings
_ENGINES = {"docker.io": "dockerd", "docker-ce": "dockerd", "podman": "podman", "nerdctl": "nerdctl"}
_TOOLKIT = "nvidia-container-toolkit"


def _values(host: OnHost) -> FoundValues:
    packaged = {name: program for name, program in _ENGINES.items() if name in host.debs}
    for name in packaged:
        yield name, host.debs[name]
    for path, *_ in host.all("engine"):
        if path.rpartition("/")[2] not in packaged.values():
            yield path, "of no package"
    if _TOOLKIT in host.debs:
        yield _TOOLKIT, host.debs[_TOOLKIT]
    for path, *_ in host.all("cdi"):
        yield path, "CDI specification"


def _adopted(host: OnHost, section: ContainerSection) -> Adopted:
    engine = next((name for name in ("docker-ce", "docker.io") if name in host.debs), "")
    version = host.debs.get(_TOOLKIT, "")
    lacking = [what for what, there in (("Docker from a package", engine), (_TOOLKIT, version)) if not there]
    if lacking:
        return Adopted(left_out=f"the host has no {' and no '.join(lacking)}", unlike=OTHER)
    differs: dict[str, Any] = {}
    if engine != section.docker:
        differs["docker"] = engine
    if version != section.toolkit.version:
        differs["toolkit"] = {"version": version}
    missing = [name for name in section.toolkit.packages if name not in host.debs]
    if missing:
        there = [name for name in section.toolkit.packages if name in host.debs]
        differs.setdefault("toolkit", {})["packages"] = there
    return Adopted(differs, unlike=max(distance(version, section.toolkit.version), 1) if differs else 0)


FOUND = Finder(_values, sh_file(__file__, "found.sh"), adopted=_adopted)
