"""Known vulnerabilities of images: what scanners' reports say, and what is said where nothing was looked for.

The scanners here are stand-ins: shell programs that take the arguments of Trivy and Grype and print a given report.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.rollout.rollout import Interrupted, Results
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.exits import run
from hostwright.common.errors import INTERRUPTED, Stopped, Unreachable
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.container.images import scanning, verbs
from hostwright.standard.roles.container.images.reports import NoReport, Vulnerabilities, read_report
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
from hostwright.standard.roles.container.images.verbs import FoundImage, scan_line
from tests.unit.support.stubs import stub

FIXTURE = Path(__file__).parents[4] / "fixtures" / "scans.jsonl"
#: facts of reports that the scanners' own tests hold, with what is right of each, counted by another program (jq)
CASES = [json.loads(line) for line in FIXTURE.read_text().splitlines()]


def as_reported(case: Mapping[str, Any]) -> str:
    """The facts in the scanner's own form."""
    family, name, ended = case["system"]
    if case["tool"] == "grype":
        matches = [
            {
                "vulnerability": {"id": id_, "severity": severity, "fix": {"state": state, "versions": ["1"] * number}},
                "artifact": {"name": package, "version": version, "type": "deb"},
            }
            for _, found in case["results"]
            for id_, package, version, (state, number), severity in found
        ]
        distro = {"name": family, "version": name}
        return json.dumps({"matches": matches, "distro": distro, "descriptor": {"name": "grype"}})
    keys = ("VulnerabilityID", "PkgName", "InstalledVersion", "FixedVersion", "Severity")
    results = []
    for kind, found in case["results"]:
        rows = [{key: value for key, value in zip(keys, row, strict=True) if value} for row in found]
        results.append(
            {"Target": "x", **({"Class": kind} if kind else {}), **({"Vulnerabilities": rows} if rows else {})}
        )
    system = {"Family": family, "Name": name, **({"EOSL": True} if ended else {})}
    whole: dict[str, Any] = {"SchemaVersion": 2, "ArtifactName": "x", "Metadata": {"OS": system} if family else {}}
    return json.dumps({**whole, **({"Results": results} if results else {})})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['tool']}-{case['case']}")
def test_a_report_is_read_to_the_numbers_that_stand_in_it(case: dict[str, Any]) -> None:
    right = case["right"]
    if not right["recognised"]:
        with pytest.raises(NoReport, match="recognises no"):
            read_report(case["tool"], as_reported(case))
        return
    found = read_report(case["tool"], as_reported(case))
    assert (found.packages, found.vulnerabilities, found.fixable) == (
        right["packages"], right["vulnerabilities"], right["fixable"],
    )  # fmt: skip
    assert found.severities == right["severities"]
    assert bool(found.unsupported) == right["eol"]


OLD_TRIVY = '[{"Target": "x", "Vulnerabilities": [{"VulnerabilityID": "CVE-1", "PkgName": "a"}]}]'


@pytest.mark.parametrize(
    ("scanner", "status", "output", "errors", "problem"),
    [
        ("trivy", 1, "", "FATAL x\nimage scan error: timeout", "trivy ended with 1: image scan error: timeout"),
        ("trivy", 1, '{"ArtifactName": "x", "Results": []}', "", "trivy ended with 1: (no error output)"),
        ("trivy", 0, "2026 INFO Vulnerability scanning is enabled\n{}", "", "trivy: its answer is no JSON"),
        ("trivy", 0, "{}", "", "trivy: its answer is no report of it"),
        ("trivy", 0, '{"ArtifactName": "scratch"}', "", "trivy: it recognises no packages in this image"),
        ("trivy", 0, '{"ArtifactName": "x", "Results": [7]}', "", "trivy: its answer cannot be read (Results.0)"),
        ("grype", 1, "", "1 error occurred:\n\t* failed to catalog", "grype ended with 1: * failed to catalog"),
        ("grype", 1, "[0000] ERROR no DB", "", "grype ended with 1: (no error output)"),
        ("grype", 0, '{"matches": []}', "", "grype: it recognises no distribution in this image"),
        ("grype", 127, "", "", "grype ended with 127: (no error output)"),
    ],
)
def test_a_scan_that_failed_is_no_image_without_findings(
    scanner: str, status: int, output: str, errors: str, problem: str
) -> None:
    scan = read_scan(scanner, "gpu01", status, output.encode(), errors.encode())
    assert (scan.found, scan.problem) == (None, problem)
    assert scan_line(scan) == f"not scanned: {problem}"


def test_reports_of_old_versions_and_of_sites_that_make_findings_a_failure_are_read() -> None:
    assert read_report("trivy", OLD_TRIVY).severities == {"unknown": 1}
    match = {"vulnerability": {"id": "CVE-1", "severity": "High"}, "artifact": {"name": "a", "version": "1"}}
    scan = read_scan("grype", "gpu01", 2, json.dumps({"matches": [match]}).encode(), b"discovered vulnerabilities")
    assert scan.found == Vulnerabilities(1, 0, 1, {"high": 1}, system=False)
    assert scan_line(scan) == (
        "1 package with known vulnerabilities, 0 of them with a fix: 1 high (grype on gpu01); its system's packages "
        "were not looked at: no distribution was recognised in it"
    )


@pytest.mark.parametrize(
    ("kind", "system", "line"),
    [
        ("os-pkgs", {"Family": "debian", "Name": "11"}, "no package with a known vulnerability (trivy on gpu01)"),
        ("lang-pkgs", {"Family": "debian", "Name": "11"}, "no package with a known vulnerability (trivy on gpu01)"),
        (
            "lang-pkgs",
            None,
            "no package of a programming language with a known vulnerability (trivy on gpu01); its system's packages "
            "were not looked at: no distribution was recognised in it",
        ),
    ],
)
def test_packages_of_a_system_that_was_not_recognised_do_not_count_as_without_findings(
    kind: str, system: dict[str, str] | None, line: str
) -> None:
    metadata = {"OS": system} if system else {}
    report = {"ArtifactName": "x", "Metadata": metadata, "Results": [{"Target": "x", "Class": kind}]}
    assert scan_line(read_scan("trivy", "gpu01", 0, json.dumps(report).encode(), b"")) == line


@pytest.mark.parametrize(
    ("scan", "status", "note"),
    [
        (Scan("trivy", "gpu01", Vulnerabilities(1, 1, 1, {"high": 1})), 0, ""),
        (Scan("trivy", "gpu01", problem="trivy ended with 1: timeout"), 1, "1 image could not be scanned"),
        (Scan(problem=NO_SCANNER), 0, "install trivy or grype"),
    ],
)
def test_a_scan_that_failed_is_in_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scan: Scan, status: int, note: str
) -> None:
    image = FoundImage("sha256:a", ("house/tool:1",), (), "", None, 1, {"gpu01": ()})
    monkeypatch.setattr(verbs, "open_fleet", lambda *_: None)
    monkeypatch.setattr(verbs, "members_of", lambda *_: [])
    monkeypatch.setattr(verbs, "found_images", lambda *_: [image])
    monkeypatch.setattr(verbs, "scan_images", lambda *_: {image.id: scan})
    for as_json in (False, True):
        assert verbs.audit(Selection(), ConnectionOptions(), 90, as_json=as_json) == status
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
        stop.ended = {image.id: Scan(problem="the run was stopped before it")}
        raise stop

    monkeypatch.setattr(verbs, "open_fleet", lambda *_: None)
    monkeypatch.setattr(verbs, "members_of", lambda *_: [])
    monkeypatch.setattr(verbs, "on_each", looked)
    monkeypatch.setattr(verbs, "found_images", lambda *_: [image])
    monkeypatch.setattr(verbs, "scan_images", scanned)
    assert run(lambda: verbs.audit(Selection(), ConnectionOptions(), 90)) == INTERRUPTED
    printed = capsys.readouterr()
    assert "house/tool:1" in printed.out
    assert ("not scanned: the run was stopped before it" in printed.out) is while_scanning
    assert ("gpu02: not done when the operator stopped" in printed.err) is not while_scanning
    assert printed.err.endswith("stopped; nothing was changed\n")


def test_a_distribution_without_fixes_is_said_also_where_nothing_was_found() -> None:
    scan = Scan("trivy", "", Vulnerabilities(0, 0, 0, {}, "ubuntu 18.04"))
    assert scan_line(scan) == (
        "no package with a known vulnerability (trivy); ubuntu 18.04 gets no fixes any more, so that newer ones are "
        "not known"
    )


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


REPORT = json.dumps({"ArtifactName": "x", "Results": [{"Class": "os-pkgs", "Vulnerabilities": [
    {"VulnerabilityID": "CVE-2026-1", "PkgName": "openssl", "InstalledVersion": "1", "FixedVersion": "2",
     "Severity": "HIGH"}]}]})  # fmt: skip
#: a stand-in: it looks whether the archive is one and whether its directory is empty, and prints a given report
STAND_IN = f"""\
echo 'this is a stand-in for a scanner' >&2
[ -z "$(ls -A)" ] || {{ echo 'not in an empty directory' >&2; exit 9; }}
for archive; do :; done
tar -tf "${{archive#docker-archive:}}" >/dev/null || exit 8
case "$*" in *"image --quiet --format json --exit-code 0 --input "*) ;; *) exit 7 ;; esac
[ "$TRIVY_SCANNERS" = vuln ] || exit 6
printf '%s' '{REPORT}'"""


class LocalShell:
    """A root shell whose host is this machine."""

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
    """What the stand-in for Docker saves."""
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
    assert scans["sha256:a"] == Scan("trivy", "gpu01", Vulnerabilities(1, 1, 1, {"high": 1}))
    assert scan_line(scans["sha256:b"]) == "not scanned: refuses the connection"
    assert scan_line(scans["sha256:c"]) == f"not scanned: {NO_SCANNER}"
    assert told == ["scanning a with trivy on gpu01"]
    assert (tmp_path / "saved.tar.log").read_text().startswith("save -o ")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_this_machines_scanner_gets_what_the_host_saves(
    tmp_path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = stub(tmp_path, docker=docker(saved), trivy=STAND_IN)
    monkeypatch.setenv("PATH", env["PATH"])
    scans, told = everything([Image("sha256:a", 10, {"gpu02": ()})], {"gpu02": ""}, env)
    assert scans == {"sha256:a": Scan("trivy", "", Vulnerabilities(1, 1, 1, {"high": 1}))}
    assert told == ["scanning a with trivy here, from gpu02"]
    assert (tmp_path / "saved.tar.log").read_text() == "save sha256:a\n"


def test_an_image_that_takes_more_than_there_is_room_for_is_not_scanned(tmp_path: Path, saved: Path) -> None:
    script = scan_script("trivy", Image("sha256:a", 10**18))
    env = {**stub(tmp_path, docker=docker(saved), trivy=STAND_IN), "TMPDIR": str(tmp_path)}
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1
    assert re.fullmatch(rf"it takes 2098083496093 MiB in {tmp_path}, where [0-9]+ MiB are free\n", done.stderr)
    assert not (tmp_path / "saved.tar.log").exists()
