"""The contents of an SBOM: software on a host and its origin, from facts, states and the release record.

All functions are pure. An SBOM contains only software that the host's layers installed or need. An SBOM contains no
address of the host, and each text from the host is on one printable line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from hostwright.common.text import short
from hostwright.plan.host import release
from hostwright.plan.host.hostfacts import OS_RELEASE, UNAME, os_release
from hostwright.plan.model import Facts
from hostwright.plan.roles.software import Software
from hostwright.plan.targets import TargetHost
from hostwright.stack.stack import Stack

Key = tuple[str, str, str]  #: kind, name and version of software

RECORDED = ("stack", "digest", "run", "commit", "at")  #: fields of the release record that an SBOM contains


@dataclass(frozen=True, slots=True)
class System:
    """The operating system of a host, from the os-release file and ``uname``. Unknown values are empty."""

    id: str = ""
    version: str = ""
    name: str = ""
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class SbomItem:
    """One piece of software on a host. ``layers`` are the layers that installed or need the software; ``address`` is
    the URL of the software's file.

    ``namespace`` is the owner of the Debian package: the distribution, or the vendor of another repository.
    """

    software: Software
    layers: tuple[str, ...]
    supplier: str = ""
    namespace: str = ""
    address: str = ""
    stand_in: bool | str = False


@dataclass(frozen=True, slots=True)
class Sbom:
    """The SBOM of one host. ``at`` is the time when the host was read; ``record`` has fields of the host's release
    record.

    ``missing`` is software of the stack that is not on the host. ``not_read`` are the states whose probes were not run.
    """

    host: str
    stack: str
    at: datetime
    system: System
    record: Mapping[str, str]
    layers: tuple[str, ...]
    items: Mapping[Key, SbomItem]
    needs: Mapping[Key, tuple[Key, ...]]
    missing: tuple[str, ...] = ()
    not_read: tuple[str, ...] = ()


def sbom_of(target: TargetHost, facts: Facts, at: datetime, redacted: Callable[[str], str] = str) -> Sbom:
    """Collect the SBOM of the host ``target`` from ``facts``, which were read at the time ``at``.

    ``redacted`` masks secrets in a text.
    """

    def clean(text: str) -> str:
        return short(redacted(text))

    found: dict[str, tuple[Software, ...]] = {}
    not_read: list[str] = []
    for role in target.desired.roles:
        of_role: list[Software] = []
        for state in role.resources:
            try:
                of_role += state.software(facts)
            except KeyError:  # One of the probes of the state was not run.
                not_read.append(f"{role.name}: {_kind(state)}")
        found[role.name] = tuple(_cleaned(software, clean) for software in of_role)
    system, record = _system(facts, clean), release.read(facts) if release.RELEASE in facts else {}
    return Sbom(
        host=target.name,
        stack=target.stack.name,
        at=at,
        system=system,
        record={key: clean(str(record[key])) for key in RECORDED if record.get(key)},
        layers=tuple(found),
        items=_items(target.stack, system, found, redacted),
        needs=_needs(target, found),
        missing=tuple(dict.fromkeys(_missing(found))),
        not_read=tuple(dict.fromkeys(not_read)),
    )


def _kind(state: object) -> str:
    inner = getattr(state, "resource", None)
    return type(state).__name__ if inner is None else _kind(inner)


def key_of(software: Software) -> Key:
    """Return the kind, name and version of ``software``."""
    return software.kind, software.name, software.version


def _cleaned(software: Software, clean: Callable[[str], str]) -> Software:
    return replace(
        software,
        name=clean(software.name),
        version=clean(software.version),
        flaw=clean(software.flaw),
        architecture=clean(software.architecture),
        source=clean(software.source),
        parts=tuple(_cleaned(part, clean) for part in software.parts),
    )


def _system(facts: Facts, clean: Callable[[str], str]) -> System:
    row = os_release(facts) if OS_RELEASE in facts else {}
    kernel = facts[UNAME].strip().partition(" ")[0] if UNAME in facts else ""
    named = row.get("NAME", "") or row.get("ID", "")
    return System(*map(clean, (row.get("ID", ""), row.get("VERSION_ID", ""), named, kernel)))


def _flat(found: Iterable[Software]) -> Iterator[Software]:
    for software in found:
        yield from (part for part in (software, *software.parts) if part.name)


def _there(found: Iterable[Software]) -> tuple[Software, ...]:
    return tuple(software for software in _flat(found) if software.version)


def _missing(found: Mapping[str, tuple[Software, ...]]) -> Iterator[str]:
    for layer, of_layer in found.items():
        for software in _flat(of_layer):
            if not software.version:
                yield f"{layer}: {software.name} {software.wanted}".rstrip()


def _items(
    stack: Stack, system: System, found: Mapping[str, tuple[Software, ...]], redacted: Callable[[str], str]
) -> dict[Key, SbomItem]:
    items: dict[Key, SbomItem] = {}
    for layer, of_layer in found.items():
        for software in _there(of_layer):
            key, item = key_of(software), _item(layer, software, stack, system, redacted)
            if known := items.get(key):
                layers = tuple(dict.fromkeys((*known.layers, layer)))
                item = replace(known if known.software.brought or not software.brought else item, layers=layers)
            items[key] = item
    return dict(sorted(items.items()))


def _item(layer: str, software: Software, stack: Stack, system: System, redacted: Callable[[str], str]) -> SbomItem:
    section = stack.sections.get(layer)
    vendor = section.vendor if section else ""
    address = next((url for url in software.artifact.urls if url.startswith("http")), "") if software.artifact else ""
    supplier = software.supplier
    if software.kind != "pypi":
        others = vendor or urlsplit(address).hostname or ""
        supplier = supplier or (others if software.brought else system.name)
    foreign = software.brought or software.supplier
    stand_ins = [artifact.stand_in for artifact in stack.used_by([layer]) if artifact.stand_in]
    # Packages from a stand-in repository are not the vendor's own packages.
    of_deb = stand_ins[0] if stand_ins and software.kind == "deb" else False
    lab = software.artifact.stand_in if software.artifact else of_deb
    return SbomItem(
        software,
        (layer,),
        supplier,
        namespace="-".join(supplier.lower().split()) if foreign else system.id,
        address=_public(redacted(address)),
        stand_in=software.brought and lab,
    )


def _public(address: str) -> str:
    """Return the URL ``address`` without the parts that may be secret: user, password, query and fragment."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host, query="", fragment="").geturl() if host else ""


def _needs(target: TargetHost, found: Mapping[str, tuple[Software, ...]]) -> dict[Key, tuple[Key, ...]]:
    """Return the dependencies of each piece of software. Software depends on its parts. The main software of a layer
    also depends on the main software of each layer that the layer needs.
    """
    needs: dict[Key, tuple[Key, ...]] = {}
    stack = target.stack
    first = {name: key_of(_main(stack, name, there)) for name, all_of in found.items() if (there := _there(all_of))}
    for of_layer in found.values():
        for software in of_layer:
            if software.version:
                needs[key_of(software)] = tuple(map(key_of, _there(software.parts)))
    for role in target.roles:
        section = stack.sections.get(role.name)
        below = (*role.needs, *(section.opens if section else ()))
        if role.name in first:
            keys = (first[layer] for layer in below if layer in first)
            needs[first[role.name]] = tuple(dict.fromkeys((*needs.get(first[role.name], ()), *keys)))
    return needs


def _main(stack: Stack, layer: str, there: tuple[Software, ...]) -> Software:
    section = stack.sections.get(layer)
    versions = set(section.versions().values()) if section else set()
    own = (software for software in there if {software.version, software.version.rpartition("-")[0]} & versions)
    return next(own, there[0])
