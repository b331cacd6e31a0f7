"""An SBOM as a CycloneDX 1.6 document. Equal SBOMs give equal documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from uuid import UUID, uuid5

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalContact, OrganizationalEntity
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

import hostwright
from hostwright.audit.sbom.contents import Sbom, SbomItem
from hostwright.common.canonical import canonical

NAME = "hostwright"
#: namespace of the UUIDs that are serial numbers of SBOMs. Never change the namespace.
SERIALS = UUID("6f9d5d34-6a0f-5d6e-9a57-3c1a5b1f0a9e")
UNKNOWN = "unknown"  #: name for an unknown supplier. The NTIA's minimum elements of an SBOM include a supplier.
#: component type of each kind of software; all other kinds are libraries
TYPES = {"driver": ComponentType.DEVICE_DRIVER, "file": ComponentType.FILE}


def render_cyclonedx(sbom: Sbom) -> str:
    """Return ``sbom`` as an indented CycloneDX JSON document.

    The timestamp is the time of the release record. The serial number changes only if the record or the software on the
    host changes. ``hostwright:read`` is the time when the host was read.
    """
    host = Component(name=sbom.host, type=ComponentType.DEVICE, bom_ref="host")
    tool = Component(name=NAME, type=ComponentType.APPLICATION, version=hostwright.__version__, bom_ref="tool")
    system = tuple(_system(sbom))
    components = {key: _component(item, sbom) for key, item in sbom.items.items()}
    bom = Bom(
        serial_number=_serial(sbom, [*system, *components.values()]),
        metadata=BomMetaData(
            tools=ToolRepository(components=[tool]),
            authors=[OrganizationalContact(name=NAME)],
            component=host,
            timestamp=_time(sbom),
            properties=list(_properties(sbom)),
        ),
        components=[*system, *components.values()],
    )
    bom.register_dependency(host, [*system, *components.values()])
    for key, needs in sbom.needs.items():
        bom.register_dependency(components[key], [components[needed] for needed in needs if needed != key])
    return JsonV1Dot6(bom).output_as_string(indent=2) + "\n"


def _time(sbom: Sbom) -> datetime:
    try:
        at = datetime.fromisoformat(sbom.record.get("at", ""))
    except ValueError:
        return sbom.at
    return at if at.tzinfo else sbom.at


def _serial(sbom: Sbom, components: Iterable[Component]) -> UUID:
    """Return the serial number of the document, which does not depend on the time when the host was read."""
    there = [
        [component.name, component.version, str(component.purl), *(str(row.value) for row in component.properties)]
        for component in components
    ]
    return uuid5(SERIALS, canonical([sbom.host, dict(sbom.record), sbom.stack, there, sbom.missing, sbom.not_read]))


def _properties(sbom: Sbom) -> Iterator[Property]:
    yield _property("stack", sbom.stack)
    yield _property("read", sbom.at.isoformat(timespec="seconds"))
    yield _property("complete", "no: only software that these layers installed or need")
    for layer in sbom.layers:
        yield _property("layer", layer)
    for name, value in sbom.record.items():
        yield _property(f"record:{name}", value)
    for missing in sbom.missing:
        yield _property("missing", missing)
    for state in sbom.not_read:
        yield _property("not-read", state)


def _property(name: str, value: str) -> Property:
    return Property(name=f"{NAME}:{name}", value=value)


def _system(sbom: Sbom) -> Iterator[Component]:
    """Yield components for the distribution and the running kernel, if known.

    Programs that read the document expect one component of the type operating-system, and some reject one with a purl
    (DependencyTrack/dependency-track#7333, aquasecurity/trivy#6482).
    """
    system = sbom.system
    if system.id:
        yield Component(
            name=system.id,
            version=system.version or UNKNOWN,
            type=ComponentType.OPERATING_SYSTEM,
            bom_ref="os",
            supplier=OrganizationalEntity(name=system.name),
        )
    if system.kernel:
        packaged = any(key[:2] == ("deb", f"linux-image-{system.kernel}") for key in sbom.items)
        yield Component(
            name="linux",
            version=system.kernel,
            type=ComponentType.PLATFORM,
            bom_ref="kernel",
            supplier=OrganizationalEntity(name=system.name if packaged else UNKNOWN),
            purl=PackageURL("generic", None, "linux", system.kernel),
        )


def _component(item: SbomItem, sbom: Sbom) -> Component:
    software, purl = item.software, _purl(item, sbom)
    return Component(
        name=software.name,
        version=software.version,
        type=TYPES.get(software.kind, ComponentType.LIBRARY),
        bom_ref=f"{software.kind}:{software.name}@{software.version}",
        supplier=OrganizationalEntity(name=item.supplier or UNKNOWN),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if (digest := _sha256(item)) else None,
        purl=purl,
        properties=list(_differences(item)),
    )


def _sha256(item: SbomItem) -> str:
    """Return the SHA-256 of the stack's file for ``item`` if the stack's version is installed, else the only known
    hash. Empty if the software was modified.
    """
    software = item.software
    if software.flaw:
        return ""
    pinned = software.artifact.sha256 if software.artifact and software.version == software.wanted else None
    return pinned or (software.sha256[0] if len(software.sha256) == 1 else "")


def _differences(item: SbomItem) -> Iterator[Property]:
    software = item.software
    for layer in item.layers:
        yield _property("layer", layer)
    if software.wanted and software.wanted != software.version:
        yield _property("wanted", software.wanted)
    if software.flaw:
        yield _property("differs", software.flaw)
    for digest in software.sha256 if len(software.sha256) > 1 else ():
        yield _property("sha256-one-of", digest)
    if software.artifact:
        yield _property("file", software.artifact.file)
    if item.stand_in:
        made = item.stand_in if isinstance(item.stand_in, str) else "made for a lab"
        yield _property("stand-in", f"not the vendor's own: {made}")


def _purl(item: SbomItem, sbom: Sbom) -> PackageURL:
    software, system, digest = item.software, sbom.system, _sha256(item)
    right = software.version == software.wanted
    download = {
        **({"checksum": f"sha256:{digest}"} if digest and software.artifact else {}),
        **({"download_url": item.address} if item.address and right and not item.stand_in else {}),
    }
    if software.kind == "pypi":
        return PackageURL("pypi", None, software.name, software.version)
    if software.kind != "deb":
        return PackageURL("generic", None, software.name, software.version, download)
    # Advisories name source packages, so ``upstream`` is the source package, as in Syft.
    upstream = software.source if software.source != software.name else ""
    ours = item.namespace == system.id and system.version
    qualifiers = {
        "arch": software.architecture,
        "upstream": upstream,
        "distro": f"{system.id}-{system.version}" if ours else "",
        **download,
    }
    qualifiers = {name: value for name, value in qualifiers.items() if value}
    return PackageURL("deb", item.namespace or UNKNOWN, software.name, software.version, qualifiers)
