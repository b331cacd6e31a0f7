"""Search for a host's container engine and NVIDIA container toolkit, from any source of installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from hostwright.roles import OTHER, Adopted, Finder, FoundValues, OnHost, distance, sh_file
from hostwright.standard.roles.container.cdi import TOOLKIT_CONFIG
from hostwright.standard.roles.container.section import ContainerSection, ContainerToolkit, Mode

#: package of a container engine → file name of the engine's program
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
    if (mode := host.first("mode")) not in ("", "auto"):
        yield "mode", mode
    for path, *_ in host.all("cdi"):
        yield path, "CDI specification"


def _adopted(host: OnHost, section: ContainerSection) -> Adopted:
    engine = next((name for name in ("docker-ce", "docker.io") if name in host.debs), "")
    version = host.debs.get(_TOOLKIT, "")
    lacking = [what for what, there in (("Docker from a package", engine), (_TOOLKIT, version)) if not there]
    if lacking:
        return Adopted(left_out=f"the host has no {' and no '.join(lacking)}", unlike=OTHER)
    toolkit = _toolkit(host, section.toolkit)
    differs: dict[str, Any] = {**_docker(host, section, engine), **({"toolkit": toolkit} if toolkit else {})}
    strange = "mode" in toolkit and not toolkit["mode"]
    notes = ("the mode of the nvidia runtime is not valid in a stack and is kept",) if strange else ()
    return Adopted(differs, unlike=max(distance(version, section.toolkit.version), 1) if differs else 0, notes=notes)


def _docker(host: OnHost, section: ContainerSection, engine: str) -> Mapping[str, Any]:
    theirs = section.docker_ce.packages if engine == "docker-ce" and section.docker_ce else (engine,)
    there = [name for name in theirs if name in host.debs]
    pins = section.docker_versions
    held = {name: host.debs[name] for name in there if pins.get(name, host.debs[name]) != host.debs[name]}
    return {
        **({"docker": engine} if engine != section.docker else {}),
        **({"docker_ce": {"packages": there}} if len(there) < len(theirs) else {}),
        **({"docker_versions": held} if held else {}),
    }


def _toolkit(host: OnHost, wanted: ContainerToolkit) -> Mapping[str, Any]:
    mode = host.first("mode") or "auto"
    there = {
        "version": host.debs[_TOOLKIT],
        "packages": tuple(name for name in wanted.packages if name in host.debs),
        "mode": wanted.mode if mode == (wanted.mode or "auto") else mode if mode in get_args(Mode) else None,
    }
    differs = {name: value for name, value in there.items() if value != getattr(wanted, name)}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in differs.items()}


_MODE = f'row mode "$(\n{sh_file(__file__, "sh/mode.sh", file=TOOLKIT_CONFIG)}\n)"\n'
FOUND = Finder(_values, sh_file(__file__, "found.sh") + _MODE, adopted=_adopted)
