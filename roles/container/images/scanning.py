"""Vulnerability scans of images, once per image for all hosts, on a host with a scanner or on the controller."""

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

SCANNERS = ("trivy", "grype")  #: supported image scanners, in order of preference
HERE = ""  #: value of ``Scan.place`` for a scan on the controller
NO_SCANNER = "no scanner"
SCAN_TIMEOUT_S = 2400.0  #: time limit in seconds of a scan (our choice). Trivy itself stops after 30 minutes.
MOST_BYTES = 16 << 20  #: maximum number of bytes in a scanner's table. Rows have up to 1 kB.
_ROOM = 2.2  #: disk space for a scan, as a multiple of the image's size
_ALONE = threading.Lock()  #: lock that is held during a scan on the controller

SCANNERS_THERE = Probe(
    sh('PATH=$PATH:/usr/local/bin:/snap/bin; for name in %s; do command -v "$name" || :; done', SCANNERS), root=True
)


@dataclass(frozen=True, slots=True)
class Scan:
    """The output of a vulnerability scanner for an image. ``problem`` is the reason if the output is missing or the
    exit status is not 0.
    """

    scanner: str = ""
    place: str = HERE  #: host on which the image was scanned
    report: str = ""
    problem: str = ""


class Scannable(Protocol):
    """Image to scan: its ID, its size, and the hosts with the image."""

    @property
    def id(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def hosts(self) -> Mapping[str, object]: ...


def scanner_of(facts: Facts) -> str:
    """Return the name of a host's vulnerability scanner; empty without a scanner."""
    names = {line.rpartition("/")[2] for line in facts[SCANNERS_THERE].text.split()}
    return next((name for name in SCANNERS if name in names), "")


def scanner_here() -> str:
    """Return the name of the controller's vulnerability scanner; empty without a scanner."""
    return next((name for name in SCANNERS if shutil.which(name)), "")


def shares(images: Sequence[Scannable], scanners: Mapping[str, str], here: str) -> dict[str, list[Scannable]]:
    """Assign each image to one of its hosts; return host → images.

    Hosts with a scanner are preferred. Otherwise, a host exports the image to the controller's scanner ``here``. Images
    that cannot be scanned are omitted.
    """
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
    """Scan images; return the scans by image ID.

    ``scanners``: host → scanner. ``connect`` opens a shell on a host, ``stop`` closes all shells, and ``tell`` receives
    progress messages. On Ctrl-C, ``Interrupted.ended`` has the finished scans.
    """
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
            scans.update({image.id: Scan(problem="the run was interrupted before this scan") for image in given[host]})
        for done in results.values:
            scans.update(done)
        return scans

    try:
        return ended(on_each(list(given), work, stop=stop))
    except Interrupted as stopped:
        stopped.ended = ended(stopped.results)
        raise


def scan_script(scanner: str, image: Scannable, archive: str = "") -> str:
    """Return a shell script that prints the scanner's table for ``image``, or for its archive at the path
    ``archive``.
    """
    room = int(_ROOM * image.size / 1024) + 1
    return sh_file(__file__, "sh/scan.sh", scanner=scanner, image=image.id, archive=archive, room=room)


def read_scan(scanner: str, place: str, status: int, output: bytes, errors: bytes) -> Scan:
    """Return the scan on the host ``place`` from the scanner's exit status and output. Empty output is a problem."""
    report = output.decode("utf-8", "replace").strip("\n")
    problem = _failed(scanner, status, errors) if status else "" if report else f"{scanner} printed nothing"
    return Scan(scanner, place, report, problem)


def _failed(scanner: str, status: int, errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return f"{scanner} ended with {status}: {short(lines[-1].strip()) if lines else '(no error output)'}"


def _scan(shell: RootShell, image: Scannable, scanner: str, place: str) -> Scan:
    if place == HERE:
        return _scan_here(shell, image, scanner)
    output = shell.attempt(scan_script(scanner, image), timeout_s=SCAN_TIMEOUT_S, cap_bytes=MOST_BYTES)
    if output.truncated:
        return Scan(scanner, place, problem=f"the table of {scanner} is larger than {MOST_BYTES >> 20} MiB")
    return read_scan(scanner, place, output.status, output.stdout, output.stderr)


def _scan_here(shell: RootShell, image: Scannable, scanner: str) -> Scan:
    with _ALONE, tempfile.TemporaryDirectory(prefix="hostwright-") as folder:
        archive = Path(folder) / "image.tar"
        free = shutil.disk_usage(folder).free
        if free < _ROOM * image.size:
            return Scan(
                scanner, problem=f"the scan needs {int(_ROOM * image.size) >> 20} MiB here, but {free >> 20} are free"
            )
        try:
            with archive.open("wb") as file:
                saved = shell.attempt(
                    sh(LOCAL_DOCKER + " save %s", image.id),
                    timeout_s=SCAN_TIMEOUT_S,
                    cap_bytes=2 * image.size + MOST_BYTES,
                    on_stdout=lambda data: (file.write(data), None)[1],
                )
            if saved.status or saved.truncated:
                return Scan(scanner, problem=f"Docker on {shell.host} failed to save the image")
            done = subprocess.run(
                ["/bin/sh", "-euc", scan_script(scanner, image, str(archive))],
                # Scanners read trivy.yaml and .grype.yaml from the working directory, so this directory must have
                # neither file.
                cwd=folder,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=SCAN_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Scan(scanner, problem=f"{scanner} failed to start on this machine: {short(str(error))}")
    return read_scan(scanner, HERE, done.returncode, done.stdout, done.stderr)
