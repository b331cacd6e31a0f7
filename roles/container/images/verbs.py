"""Implementation of ``images.audit``: images and containers on hosts, ages, and known vulnerabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rich.text import Text

from hostwright.cli.verb import (
    Connections,
    Interrupted,
    Request,
    Results,
    ask,
    ask_password,
    console,
    errors_json,
    on_each,
    open_fleet,
    print_document,
    show_errors,
    shown,
    targets_of,
)
from hostwright.roles import Command, HostError, InputError, count, printable, shown_bytes
from hostwright.standard.roles.container.images.facts import IMAGES_PROBE, ImageFacts, read_images
from hostwright.standard.roles.container.images.scanning import (
    NO_SCANNER,
    SCANNERS_THERE,
    Scan,
    scan_images,
    scanner_of,
)

ROLE = "container"
NOT_LOOKED = "images were not scanned for vulnerabilities (--no-scan)"
INSTALL = "to scan images for vulnerabilities, install trivy or grype on a host or on this machine"


@dataclass(frozen=True, slots=True)
class FoundImage:
    """Image, with host name → the image's containers as ``NAME (STATE)``."""

    id: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]
    created: str
    days: int | None  #: days since the image was built; ``None`` without a build date
    size: int
    hosts: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Looked:
    results: Results[tuple[str, ImageFacts]]
    scans: dict[str, Scan] | None


def audit(request: Request, older: int, *, scan: bool = True) -> int:
    """Run ``images.audit``, which marks images older than ``older`` days.

    An image on many hosts is listed and scanned once. Ctrl-C prints the results so far.
    """
    if older < 0:
        raise InputError(f"expected a number of days, found {older}", "--older")
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    password = ask_password(request)
    connections = Connections(password)
    scanners: dict[str, str] = {}

    def look(name: str) -> tuple[str, ImageFacts]:
        with connections.connect(targets.by_name[name]) as shell:
            answers = ask(shell, (IMAGES_PROBE, SCANNERS_THERE) if scan else (IMAGES_PROBE,))
        facts = read_images(answers)
        if facts.trouble:
            raise HostError(name, facts.trouble)
        scanners[name] = scanner_of(answers) if scan else ""
        return name, facts

    def scanned(images: Sequence[FoundImage]) -> dict[str, Scan]:
        again = Connections(password)
        quiet = console.make_console(stderr=True)
        return scan_images(
            images,
            scanners,
            lambda name: again.connect(targets.by_name[name]),
            again.close,
            lambda line: quiet.print(Text(printable(line))),
        )

    def work() -> _Looked:
        try:
            results = on_each([target.name for target in targets], look, stop=connections.close)
        except Interrupted as stop:
            stop.ended = _Looked(stop.results, None)
            raise
        images = found_images(dict(results.values), datetime.now(UTC))
        try:
            return _Looked(results, scanned(images) if scan else None)
        except Interrupted as stop:
            stop.ended = _Looked(results, stop.ended)
            raise

    looked = shown(work, lambda looked: _show(looked, older, scan=scan, as_json=request.json))
    return 1 if looked.results.errors or any(failed(each) for each in (looked.scans or {}).values()) else 0


def _show(looked: _Looked, older: int, *, scan: bool, as_json: bool) -> None:
    results, scans = looked.results, looked.scans or {}
    images = found_images(dict(results.values), datetime.now(UTC))
    notes = [*_notes(scans.values(), scan=scan), *_cut(dict(results.values))]
    if as_json:
        rows = [
            {
                **asdict(image),
                "old": is_old(image, older),
                "scan": asdict(scans[image.id]) if image.id in scans else None,
            }
            for image in images
        ]
        print_document("images", {"images": rows, "notes": notes, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    for line in (*lines(images, older, scans), *notes):
        out.print(Text(printable(line)))
    show_errors(results.errors)


def _notes(scans: Iterable[Scan], *, scan: bool) -> list[str]:
    if not scan:
        return [NOT_LOOKED]
    missed = sum(failed(each) for each in scans)
    parts = [f"the scan of {count(missed, 'image')} failed, so that the status is 1"] if missed else []
    return parts + ([INSTALL] if any(each.problem == NO_SCANNER for each in scans) else [])


def _cut(hosts: Mapping[str, ImageFacts]) -> Iterator[str]:
    for host, facts in hosts.items():
        for sha256 in facts.cut:
            yield (
                f"{host}: the load of the archive sha256:{sha256[:12]} was killed before the check of its names; run"
                f" {Command('images.push')} with that archive again"
            )


def failed(scan: Scan) -> bool:
    """Return whether a scan failed. A missing scanner does not count as a failure."""
    return bool(scan.problem) and scan.problem != NO_SCANNER


def is_old(image: FoundImage, older: int) -> bool:
    """Return whether the image was built more than ``older`` days ago."""
    return image.days is not None and image.days > older


def found_images(hosts: dict[str, ImageFacts], now: datetime) -> list[FoundImage]:
    """Return all images of the hosts, each once, oldest first. Images that only a container has are omitted."""
    by_id: dict[str, FoundImage] = {}
    for host in sorted(hosts):
        facts = hosts[host]
        for image in facts.images:
            named = {container.name.lstrip("/"): container for container in facts.containers}
            held = tuple(f"{name} ({named[name].state})" for name in sorted(named) if named[name].image == image.id)
            known = by_id.get(image.id)
            tags = tuple(sorted({*(known.tags if known else ()), *(image.tags or ())}))
            digests = tuple(sorted({*(known.digests if known else ()), *(image.digests or ())}))
            there = {**(known.hosts if known else {}), host: held}
            by_id[image.id] = FoundImage(image.id, tags, digests, image.created, image.days(now), image.size, there)
    return sorted(by_id.values(), key=lambda image: (-1 if image.days is None else -image.days, image.tags, image.id))


def lines(images: Sequence[FoundImage], older: int, scans: Mapping[str, Scan] | None = None) -> Iterator[str]:
    """Yield the report's lines: each image, then its hosts. Hosts with the same containers share a line."""
    if not images:
        yield "no images"
    for image in images:
        age = "without a date" if image.days is None else f"{count(image.days, 'day')} old"
        note = f", older than {count(older, 'day')}" if is_old(image, older) else ""
        names = ", ".join(image.tags) or "(no name)"
        yield f"{image.id.removeprefix('sha256:')[:12]}  {names}  {shown_bytes(image.size)}, {age}{note}"
        folded: dict[tuple[str, ...], list[str]] = {}
        for host, containers in image.hosts.items():
            folded.setdefault(containers, []).append(host)
        for containers, names_of in folded.items():
            yield f"    {', '.join(names_of)}: {', '.join(containers) or 'no container'}"
        if scans:
            yield from (f"    {line}" for line in scan_lines(scans[image.id]))
    old = sum(is_old(image, older) for image in images)
    if old:
        yield f"{count(old, 'image')} older than {count(older, 'day')}"


def scan_lines(scan: Scan) -> Iterator[str]:
    """Yield the scanner's table, and the error of a missing table or failed scan."""
    if scan.report:
        yield f"{scan.scanner} on {scan.place}:" if scan.place else f"{scan.scanner}:"
        yield from (f"{console.OUTPUT} {line}" for line in scan.report.splitlines())
    if scan.problem:
        yield scan.problem if scan.report else f"not scanned: {scan.problem}"
