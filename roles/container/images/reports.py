"""What a scanner says of an image, as JSON: Trivy's report or Grype's, read to the same few numbers.

A package counts once for each version of it that is in the image, a vulnerability once for each such package. Whether
it is one, how bad it is and whether there is a fix is the scanner's word.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

SCANNERS = ("trivy", "grype")  #: the one that is taken where both are at hand is the first
SEVERITIES = ("critical", "high", "medium", "low", "negligible", "unknown")
_PACKAGES = ("os-pkgs", "lang-pkgs", "")  #: classes of Trivy's results about packages; before 0.22 there were none
_T = TypeVar("_T")


class NoReport(ValueError):
    """Why a text is no report, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Vulnerabilities:
    """The known vulnerabilities of an image's packages, as a scanner counts them on that day."""

    packages: int  #: that have any
    fixable: int  #: of these: such as have a version without at least one of theirs
    vulnerabilities: int
    severities: Mapping[str, int]  #: how many of each, in the order of ``SEVERITIES``
    unsupported: str = ""  #: the distribution that gets no fixes any more, so that nobody counts new ones
    system: bool = True  #: whether the distribution's packages were looked at, and not those of languages alone


@dataclass(frozen=True, slots=True)
class _Found:
    """A vulnerability of one package."""

    id: str
    package: str
    version: str
    severity: str
    fixed: bool


@dataclass(frozen=True, slots=True)
class _TrivyVulnerability:
    id: Annotated[str, Field(validation_alias="VulnerabilityID")]
    package: Annotated[str, Field(validation_alias="PkgName")]
    version: Annotated[str, Field(validation_alias="InstalledVersion")] = ""
    fixed: Annotated[str | None, Field(validation_alias="FixedVersion")] = ""
    severity: Annotated[str | None, Field(validation_alias="Severity")] = ""


@dataclass(frozen=True, slots=True)
class _TrivyResult:
    kind: Annotated[str, Field(validation_alias="Class")] = ""
    found: Annotated[list[_TrivyVulnerability] | None, Field(validation_alias="Vulnerabilities")] = None


@dataclass(frozen=True, slots=True)
class _TrivySystem:
    family: Annotated[str, Field(validation_alias="Family")] = ""
    name: Annotated[str, Field(validation_alias="Name")] = ""
    ended: Annotated[bool, Field(validation_alias="EOSL")] = False


@dataclass(frozen=True, slots=True)
class _TrivyMetadata:
    system: Annotated[_TrivySystem | None, Field(validation_alias="OS")] = None


@dataclass(frozen=True, slots=True)
class _Trivy:
    results: Annotated[list[_TrivyResult] | None, Field(validation_alias="Results")] = None
    metadata: Annotated[_TrivyMetadata, Field(validation_alias="Metadata")] = field(default_factory=_TrivyMetadata)
    artifact: Annotated[str | None, Field(validation_alias="ArtifactName")] = None


@dataclass(frozen=True, slots=True)
class _GrypeFix:
    versions: list[str] | None = None
    state: str = ""


@dataclass(frozen=True, slots=True)
class _GrypeVulnerability:
    id: str
    severity: str = ""
    fix: _GrypeFix = field(default_factory=_GrypeFix)


@dataclass(frozen=True, slots=True)
class _GrypeArtifact:
    name: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class _GrypeMatch:
    vulnerability: _GrypeVulnerability
    artifact: _GrypeArtifact


@dataclass(frozen=True, slots=True)
class _GrypeDistro:
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Grype:
    matches: list[_GrypeMatch] | None
    distro: _GrypeDistro | None = None


_RESULTS, _TRIVY, _GRYPE = TypeAdapter(list[_TrivyResult]), TypeAdapter(_Trivy), TypeAdapter(_Grype)


def read_report(scanner: str, text: str) -> Vulnerabilities:
    """The numbers of a report. Raises ``NoReport`` for what is none, and where the scanner recognised no packages: then
    nothing was looked for, and nothing found means nothing."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoReport("its answer is no JSON") from error
    return _of_trivy(document) if scanner == "trivy" else _of_grype(document)


def _of_trivy(document: object) -> Vulnerabilities:
    if isinstance(document, list):  # before 0.20, a report was the list of its results
        report = _Trivy(_read(_RESULTS, document))
    else:
        report = _read(_TRIVY, document)
        if report.artifact is None:
            raise NoReport("its answer is no report of it")
    results = [result for result in report.results or () if result.kind in _PACKAGES]
    if not results:
        raise NoReport("it recognises no packages in this image")
    system = report.metadata.system
    ended = f"{system.family} {system.name}".strip() if system and system.ended else ""
    found = (
        _Found(each.id, each.package, each.version, (each.severity or "").lower(), bool(each.fixed))
        for result in results
        for each in result.found or ()
    )
    looked = system is not None or any(result.kind != "lang-pkgs" for result in results)
    return _counted(found, ended, system=looked)


def _of_grype(document: object) -> Vulnerabilities:
    report = _read(_GRYPE, document)
    if not report.matches and not (report.distro and report.distro.name):
        raise NoReport("it recognises no distribution in this image")
    found = (
        _Found(
            match.vulnerability.id,
            match.artifact.name,
            match.artifact.version,
            match.vulnerability.severity.lower(),
            match.vulnerability.fix.state == "fixed" and bool(match.vulnerability.fix.versions),
        )
        for match in report.matches or ()
    )
    return _counted(found, system=bool(report.distro and report.distro.name))


def _read(adapter: TypeAdapter[_T], document: object) -> _T:
    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))
        raise NoReport(f"its answer cannot be read ({where or 'no object'})") from error


def _counted(found: Iterable[_Found], unsupported: str = "", *, system: bool) -> Vulnerabilities:
    once: dict[tuple[str, str, str], _Found] = {}
    fixable: set[tuple[str, str]] = set()
    for each in found:
        once.setdefault((each.id, each.package, each.version), each)
        if each.fixed:
            fixable.add((each.package, each.version))
    counts = Counter(each.severity if each.severity in SEVERITIES else SEVERITIES[-1] for each in once.values())
    return Vulnerabilities(
        len({(each.package, each.version) for each in once.values()}),
        len(fixable),
        len(once),
        {severity: counts[severity] for severity in SEVERITIES if counts[severity]},
        unsupported,
        system,
    )
