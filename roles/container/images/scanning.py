"""Scanning images for known vulnerabilities, once for all hosts that have one: on a host with a scanner, or here.

What is shown is the scanner's own table, and whether findings are a failure is its own exit status.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hostwright.cli.verb import Interrupted, Results, RootShell, on_each
from hostwright.resources import Facts, Probe
from hostwright.roles import sh, sh_file, short
from hostwright.standard.roles.container.running import LOCAL_DOCKER

SCANNERS = ("trivy", "grype")  #: the one that is taken where both are at hand is the first
HERE = ""  #: the place of a scan that ran on this machine
NO_SCANNER = "no scanner"
SCAN_TIMEOUT_S = 2400.0  #: our choice: Trivy itself gives up after 30 minutes
MOST_BYTES = 16 << 20  #: of a table; a row has up to 1 kB
_ROOM = 2.2  #: what a scan takes on a disk, in times the image's size: its archive, and layers unpacked beside it
_ALONE = threading.Lock()  #: one scan at a time on this machine

#: the scanners of a host, a line each
SCANNERS_THERE = Probe(
    sh('PATH=$PATH:/usr/local/bin:/snap/bin; for name in %s; do command -v "$name" || :; done', SCANNERS), root=True
)


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scanner printed about an image. ``problem`` says why it printed nothing, or how it ended otherwise than
    with 0."""

    scanner: str = ""
    place: str = HERE  #: the host on which it ran
    report: str = ""  #: its table
    problem: str = ""


class Scannable(Protocol):
    """An image, by its ID and its size, on these hosts."""

    @property
    def id(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def hosts(self) -> Mapping[str, object]: ...


def scanner_of(facts: Facts) -> str:
    """The scanner of a host; empty where there is none."""
    names = {line.rpartition("/")[2] for line in facts[SCANNERS_THERE].text.split()}
    return next((name for name in SCANNERS if name in names), "")


def scanner_here() -> str:
    """The scanner of this machine; empty where there is none."""
    return next((name for name in SCANNERS if shutil.which(name)), "")


def shares(images: Sequence[Scannable], scanners: Mapping[str, str], here: str) -> dict[str, list[Scannable]]:
    """Which host gives which images: each image once, on the host with a scanner that has the least to do, else from
    any host to this machine's scanner; what nobody can scan is in no host's share."""
    given: dict[str, list[Scannable]] = {}
    load: Counter[str] = Counter()
    for image in sorted(images, key=lambda image: (-image.size, image.id)):
        able = [host for host in image.hosts if scanners.get(host)] or (list(image.hosts) if here else [])
        if able:
            host = min(able, key=lambda name: (load[name], name))
            load[host] += image.size
            given.setdefault(host, []).append(image)
    return given


def scan_images(
    images: Sequence[Scannable],
    scanners: Mapping[str, str],
    connect: Callable[[str], RootShell],
    stop: Callable[[], None],
    tell: Callable[[str], None],
) -> dict[str, Scan]:
    """The scan of each image by its ID. ``scanners`` has each host's, ``connect`` opens one, ``tell`` hears what
    begins. What is known on Ctrl-C is the ``ended`` of ``Interrupted``."""
    here = scanner_here()
    given = shares(images, scanners, here)

    def work(host: str) -> dict[str, Scan]:
        scans = {}
        with connect(host) as shell:
            for image in given[host]:
                scanner, place = (scanners[host], host) if scanners.get(host) else (here, HERE)
                tell(f"scanning {image.id[7:19]} with {scanner} {f'on {place}' if place else f'here, from {host}'}")
                scans[image.id] = _scan(shell, image, scanner, place)
        return scans

    def ended(results: Results[dict[str, Scan]]) -> dict[str, Scan]:
        scans = {image.id: Scan(problem=NO_SCANNER) for image in images}
        for error in results.errors:
            scans.update({image.id: Scan(problem=short(error.sentence)) for image in given.get(error.host, ())})
        for host in results.untouched:
            scans.update({image.id: Scan(problem="the run was stopped before it") for image in given[host]})
        for done in results.values:
            scans.update(done)
        return scans

    try:
        return ended(on_each(list(given), work, stop=stop))
    except Interrupted as stopped:
        stopped.ended = ended(stopped.results)
        raise


def scan_script(scanner: str, image: Scannable, archive: str = "") -> str:
    """A root program that prints the scanner's table of an image, or of this archive of it."""
    room = int(_ROOM * image.size / 1024) + 1
    return sh_file(__file__, "sh/scan.sh", scanner=scanner, image=image.id, archive=archive, room=room)


def read_scan(scanner: str, place: str, status: int, output: bytes, errors: bytes) -> Scan:
    """What came of a scan. One that prints nothing has found out nothing."""
    report = output.decode("utf-8", "replace").strip("\n")
    problem = _failed(scanner, status, errors) if status else "" if report else f"{scanner} printed nothing about it"
    return Scan(scanner, place, report, problem)


def _failed(scanner: str, status: int, errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return f"{scanner} ended with {status}: {short(lines[-1].strip()) if lines else '(no error output)'}"


def _scan(shell: RootShell, image: Scannable, scanner: str, place: str) -> Scan:
    if place == HERE:
        return _scan_here(shell, image, scanner)
    output = shell.attempt(scan_script(scanner, image), timeout_s=SCAN_TIMEOUT_S, cap_bytes=MOST_BYTES)
    if output.truncated:
        return Scan(scanner, place, problem=f"the table of {scanner} is longer than {MOST_BYTES >> 20} MiB")
    return read_scan(scanner, place, output.status, output.stdout, output.stderr)


def _scan_here(shell: RootShell, image: Scannable, scanner: str) -> Scan:
    """The host saves the image to this machine, where it is scanned."""
    with _ALONE, tempfile.TemporaryDirectory(prefix="hostwright-") as folder:
        archive = Path(folder) / "image.tar"
        free = shutil.disk_usage(folder).free
        if free < _ROOM * image.size:
            return Scan(scanner, problem=f"it takes {int(_ROOM * image.size) >> 20} MiB here, {free >> 20} are free")
        try:
            with archive.open("wb") as file:
                saved = shell.attempt(
                    sh(LOCAL_DOCKER + " save %s", image.id),
                    timeout_s=SCAN_TIMEOUT_S,
                    cap_bytes=2 * image.size + MOST_BYTES,
                    on_stdout=lambda data: (file.write(data), None)[1],
                )
            if saved.status or saved.truncated:
                return Scan(scanner, problem=f"the Docker of {shell.host} could not save it")
            done = subprocess.run(
                ["/bin/sh", "-euc", scan_script(scanner, image, str(archive))],
                cwd=folder,  # scanners read settings from the working directory (trivy.yaml, .grype.yaml)
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=SCAN_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Scan(scanner, problem=f"{scanner} could not be run here: {short(str(error))}")
    return read_scan(scanner, HERE, done.returncode, done.stdout, done.stderr)
