"""Vulnerability scans of images: tables of scanners, and output without a scanner.

The scanners are stand-ins: shell programs with the arguments of Trivy and Grype that print a given table.
"""

from __future__ import annotations

import io
import re
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.rollout.rollout import Interrupted, Results
from hostwright.cli.exits import run
from hostwright.common.errors import INTERRUPTED, Stopped, Unreachable
from hostwright.common.request import Request
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.container.images import scanning, verbs
from hostwright.standard.roles.container.images.scanning import (
    NO_SCANNER,
    SCANNERS_THERE,
    Scan,
    read_scan,
    scan_images,
    scan_script,
    scanner_of,
    shares,
)
from hostwright.standard.roles.container.images.verbs import FoundImage, failed, scan_lines
from tests.unit.support.stubs import stub

TABLE = "tool.tar (debian 11)\n\nTotal: 1 (HIGH: 1)\n\n│ openssl │ CVE-2026-1 │ HIGH │"


@pytest.mark.parametrize(
    ("scanner", "status", "output", "errors", "problem"),
    [
        ("trivy", 1, "", "FATAL x\nimage scan error: timeout", "trivy ended with 1: image scan error: timeout"),
        ("trivy", 0, "\n", "", "trivy printed nothing"),
        ("grype", 1, "", "1 error occurred:\n\t* failed to catalog", "grype ended with 1: * failed to catalog"),
        ("grype", 127, "", "", "grype ended with 127: (no error output)"),
    ],
)
def test_a_scan_that_failed_is_no_image_without_findings(
    scanner: str, status: int, output: str, errors: str, problem: str
) -> None:
    scan = read_scan(scanner, "gpu01", status, output.encode(), errors.encode())
    assert (scan.report, scan.problem) == ("", problem)
    assert list(scan_lines(scan)) == [f"not scanned: {problem}"]


def test_the_scanners_own_table_is_shown_and_its_own_status_counts() -> None:
    """Grype's configuration can turn findings into a failure (``fail-on-severity``); the table is still shown."""
    scan = read_scan("trivy", "gpu01", 0, f"\n{TABLE}\n\n".encode(), b"")
    assert scan == Scan("trivy", "gpu01", TABLE)
    assert not failed(scan)
    assert list(scan_lines(scan)) == ["trivy on gpu01:", *(f"│ {line}" for line in TABLE.splitlines())]
    scan = read_scan("grype", "", 2, TABLE.encode(), b"discovered vulnerabilities at or above the severity threshold")
    assert failed(scan)
    assert next(scan_lines(scan)) == "grype:"
    assert list(scan_lines(scan))[-1].startswith("grype ended with 2: discovered vulnerabilities")


@pytest.mark.parametrize(
    ("scan", "status", "note"),
    [
        (Scan("trivy", "gpu01", TABLE), 0, "Total: 1"),
        (Scan("trivy", "gpu01", problem="trivy ended with 1: timeout"), 1, "the scan of 1 image failed"),
        (Scan(problem=NO_SCANNER), 0, "install trivy or grype"),
    ],
)
def test_a_scan_that_failed_is_in_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scan: Scan, status: int, note: str
) -> None:
    image = FoundImage("sha256:a", ("house/tool:1",), (), "", None, 1, {"gpu01": ()})
    monkeypatch.setattr(verbs, "open_fleet", lambda *_: None)
    monkeypatch.setattr(verbs, "targets_of", lambda *_: [])
    monkeypatch.setattr(verbs, "found_images", lambda *_: [image])
    monkeypatch.setattr(verbs, "scan_images", lambda *_: {image.id: scan})
    for as_json in (False, True):
        assert verbs.audit(Request(json=as_json), 90) == status
        assert note in capsys.readouterr().out


@pytest.mark.parametrize("while_scanning", [False, True])
def test_what_is_known_when_ctrl_c_ends_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], while_scanning: bool
) -> None:
    image = FoundImage("sha256:a", ("house/tool:1",), (), "", None, 1, {"gpu01": ()})
    results: Results[Any] = Results((), (Stopped("gpu02", "not done when the operator stopped"),))

    def looked(*_: Any, **__: Any) -> Any:
        if while_scanning:
            return Results((), ())
        raise Interrupted(results)

    def scanned(*_: Any) -> Any:
        stop = Interrupted(results)
        stop.ended = {image.id: Scan(problem="the run was interrupted before this scan")}
        raise stop

    monkeypatch.setattr(verbs, "open_fleet", lambda *_: None)
    monkeypatch.setattr(verbs, "targets_of", lambda *_: [])
    monkeypatch.setattr(verbs, "on_each", looked)
    monkeypatch.setattr(verbs, "found_images", lambda *_: [image])
    monkeypatch.setattr(verbs, "scan_images", scanned)
    assert run(lambda: verbs.audit(Request(), 90)) == INTERRUPTED
    printed = capsys.readouterr()
    assert "house/tool:1" in printed.out
    assert ("not scanned: the run was interrupted before this scan" in printed.out) is while_scanning
    assert ("gpu02: not done when the operator stopped" in printed.err) is not while_scanning
    assert printed.err.endswith("stopped; nothing was changed\n")


@dataclass(frozen=True)
class Image:
    id: str
    size: int
    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)


def test_each_image_is_scanned_once_where_there_is_a_scanner() -> None:
    a, b, c = (
        Image(f"sha256:{name}", size, {"h1": (), "h2": (), "h3": ()})
        for name, size in zip("abc", (9, 5, 3), strict=True)
    )
    alone = Image("sha256:d", 1, {"h3": ()})
    given = shares([a, b, c, alone], {"h1": "trivy", "h2": "grype", "h3": ""}, "")
    assert given == {"h1": [a], "h2": [b, c]}
    assert shares([alone], {"h3": ""}, "trivy") == {"h3": [alone]}


@pytest.mark.parametrize(
    ("answer", "scanner"),
    [("/usr/bin/trivy\n/usr/bin/grype\n", "trivy"), ("/snap/bin/grype\n", "grype"), ("", ""), ("/x/trivy-old\n", "")],
)
def test_the_scanner_of_a_host(answer: str, scanner: str) -> None:
    assert scanner_of(Facts({SCANNERS_THERE: Answer(0, answer)})) == scanner


#: stand-in: checks that the archive is valid and its directory empty, and prints a given report
STAND_IN = f"""\
echo 'this is a stand-in for a scanner' >&2
[ -z "$(ls -A)" ] || {{ echo 'not in an empty directory' >&2; exit 9; }}
for archive; do :; done
tar -tf "${{archive#docker-archive:}}" >/dev/null || exit 8
case "$*" in *"image --quiet --format table --input "*) ;; *) exit 7 ;; esac
[ "$TRIVY_SCANNERS" = vuln ] || exit 6
printf '%s\n' '{TABLE}'"""


class LocalShell:
    """Root shell on this machine."""

    def __init__(self, host: str, env: Mapping[str, str]):
        self.host, self._env = host, env

    def __enter__(self) -> LocalShell:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def attempt(
        self, script: str, *, timeout_s: float, cap_bytes: int, on_stdout: Callable[[bytes], None] | None = None
    ) -> Any:
        done = subprocess.run(
            ["/bin/sh", "-c", script], capture_output=True, env=self._env, timeout=timeout_s, check=False
        )
        assert len(done.stdout) < cap_bytes
        if on_stdout:
            on_stdout(done.stdout)
        return Output(done.returncode, b"" if on_stdout else done.stdout, done.stderr)


@dataclass
class Output:
    status: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Output of the stand-in for ``docker save``."""
    path = tmp_path / "saved.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(tarfile.TarInfo("manifest.json"), io.BytesIO())
    return path


def docker(saved: Path) -> str:
    return f'case "$2" in -o) cat {saved} >"$3" ;; *) cat {saved} ;; esac; echo "$*" >>{saved}.log'


def everything(
    images: list[Image], scanners: dict[str, str], env: Mapping[str, str]
) -> tuple[dict[str, Scan], list[str]]:
    told: list[str] = []

    def connect(name: str) -> Any:
        if name == "away":
            raise Unreachable(name, "refuses the connection")
        return LocalShell(name, env)

    return scan_images(images, scanners, connect, lambda: None, told.append), told


def test_a_hosts_own_scanner_gets_an_archive_and_nothing_is_left(
    tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "scanner_here", lambda: "")
    env = {**stub(tmp_path, docker=docker(saved), trivy=STAND_IN), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    images = [Image("sha256:a", 10, {"gpu01": (), "gpu02": ()}), Image("sha256:b", 10, {"away": ()}),
              Image("sha256:c", 10, {"gpu03": ()})]  # fmt: skip
    scans, told = everything(images, {"gpu01": "trivy", "gpu02": "", "away": "trivy", "gpu03": ""}, env)
    assert scans["sha256:a"] == Scan("trivy", "gpu01", TABLE)
    assert list(scan_lines(scans["sha256:b"])) == ["not scanned: refuses the connection"]
    assert list(scan_lines(scans["sha256:c"])) == [f"not scanned: {NO_SCANNER}"]
    assert told == ["scanning a with trivy on gpu01"]
    assert (tmp_path / "saved.tar.log").read_text().startswith("save -o ")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_this_machines_scanner_gets_what_the_host_saves(
    tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = stub(tmp_path, docker=docker(saved), trivy=STAND_IN)
    monkeypatch.setenv("PATH", env["PATH"])
    scans, told = everything([Image("sha256:a", 10, {"gpu02": ()})], {"gpu02": ""}, env)
    assert scans == {"sha256:a": Scan("trivy", "", TABLE)}
    assert told == ["scanning a with trivy here, from gpu02"]
    assert (tmp_path / "saved.tar.log").read_text() == "-H unix:///var/run/docker.sock save sha256:a\n"


def test_an_image_that_takes_more_than_there_is_room_for_is_not_scanned(tmp_path: Path, saved: Path) -> None:
    script = scan_script("trivy", Image("sha256:a", 10**18))
    env = {**stub(tmp_path, docker=docker(saved), trivy=STAND_IN), "TMPDIR": str(tmp_path)}
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1
    assert re.fullmatch(rf"it takes 2098083496093 MiB in {tmp_path}, where [0-9]+ MiB are free\n", done.stderr)
    assert not (tmp_path / "saved.tar.log").exists()
