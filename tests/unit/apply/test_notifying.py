"""Who is told of a run: what the command gets, and that it never holds a run up, whatever it does."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply import notifying
from hostwright.apply.events import HostEnded
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.redaction import Redactor
from hostwright.apply.notifying import Notifier, secrets_of, settle
from hostwright.common.quoting import sh
from hostwright.common.secret import Secret

HOSTS = ("gpu01", "gpu02", "gpu03")
HEADER = RunHeader("20261124t120000-ab12", "provision", HOSTS, "/fleet/inventory", operator="alice@desk")
ENDED = {"status": 1, "how": "ended", "sentence": "a canary failed"}


class Told:
    """A command that keeps what it gets, each call in a file of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.command = sh('cat > "$(mktemp %s/XXXXXX)"', str(folder))
        self.warned: list[str] = []

    def notifier(self, *secrets: str, command: str = "", header: RunHeader = HEADER) -> Notifier:
        return Notifier(command or self.command, header, Redactor(map(Secret, secrets)), self.warned.append)

    def all(self) -> list[dict[str, Any]]:
        """What was told, in that order."""
        settle()
        files = sorted(self.folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
        return [json.loads(file.read_text()) for file in files]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    folder = tmp_path / "it's told"
    folder.mkdir()
    return Told(folder)


def test_the_first_failure_and_the_end_are_told(told: Told) -> None:
    notifier = told.notifier()
    notifier(HostEnded("gpu01", "changed"))
    notifier(HostEnded("gpu02", "failed", "driver: no compiler"))
    notifier(HostEnded("gpu03", "unreachable", "refused"))
    notifier.end(ENDED)
    first, end = told.all()
    assert (first["event"], end["event"]) == ("first failure", "end")
    assert first["results"] == {"gpu01": "changed", "gpu02": "failed", "gpu03": "waiting"}
    assert (first["status"], first["how"], first["schema"]) == (None, "running", 1)
    assert first["failed"] == [{"host": "gpu02", "result": "failed", "sentence": "driver: no compiler"}]
    assert (end["status"], end["how"], end["sentence"]) == (1, "ended", "a canary failed")
    assert [each["host"] for each in end["failed"]] == ["gpu02", "gpu03"]
    assert end["text"].splitlines() == [
        "provision on 3 hosts: 1 changed, 1 failed, 1 unreachable, ended with status 1 "
        "(run 20261124t120000-ab12 of alice@desk)",
        "gpu02: driver: no compiler",
        "gpu03: refused",
    ]
    assert told.warned == []


def test_the_failure_of_the_last_host_is_told_with_the_end(told: Told) -> None:
    notifier = told.notifier()
    for host in HOSTS:
        notifier(HostEnded(host, "failed" if host == "gpu03" else "as desired"))
    notifier.end(ENDED)
    assert [each["event"] for each in told.all()] == ["end"]


def test_what_hosts_say_is_never_a_command(told: Told, tmp_path: Path) -> None:
    evil = f"'; touch {tmp_path}/evil; $(touch {tmp_path}/evil) `touch {tmp_path}/evil` \x1b[2J\nsecond"
    notifier = told.notifier(header=RunHeader("r1", "verify", (evil, "b"), "i"))
    notifier(HostEnded(evil, "failed", evil))
    notifier.end(ENDED)
    first, _ = told.all()
    assert first["failed"][0]["host"] == evil
    assert "\x1b" not in first["failed"][0]["sentence"] + first["text"]
    assert len(first["text"].splitlines()) == 2, "a host's text does not begin a line"
    assert not (tmp_path / "evil").exists()


def test_secrets_are_masked(told: Told) -> None:
    notifier = told.notifier("opensesame")
    notifier(HostEnded("gpu01", "failed", "curl https://u:pw@mirror/ with opensesame"))
    notifier.end({**ENDED, "sentence": "opensesame"})
    text = json.dumps(told.all())
    assert "curl https://***@mirror/ with ***" in text
    assert "opensesame" not in text


def test_the_address_of_a_webhook_is_a_secret() -> None:
    command = "curl --data @- 'https://hooks.example.org/services/T0/B1/XyZ'; cat"
    assert secrets_of(command) == {Secret("https://hooks.example.org/services/T0/B1/XyZ")}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo 'curl: (22) error: 404' >&2; exit 22", "status 22: curl: (22) error: 404"),
        ("nonesuch-command", "status 127"),
        ("cat >/dev/full", "status 1"),
    ],
)
def test_a_command_that_fails_is_a_warning_at_the_end(told: Told, command: str, why: str) -> None:
    notifier = told.notifier(command=command)
    notifier(HostEnded("gpu01", "failed"))
    assert told.warned == []
    notifier.end(ENDED)
    settle()
    (sentence,) = told.warned
    assert why in sentence
    assert "the run is not affected" in sentence


def test_a_command_that_hangs_holds_nothing_up(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifying, "TIMEOUT_S", 0.3)
    holding, runs = threading.Event(), notifying.run_here

    def held(*given: Any, **more: Any) -> Any:
        holding.wait()
        return runs(*given, **more)

    monkeypatch.setattr(notifying, "run_here", held)
    notifier = told.notifier(command="sleep 600 & wait")
    for host in HOSTS:
        notifier(HostEnded(host, "failed"))
    notifier.end(ENDED)  # nothing is waited for, or this would not be reached
    assert told.warned == []
    holding.set()
    settle()
    assert "it took more than 0 s" in told.warned[0]


def test_a_command_need_not_read_what_it_gets(told: Told) -> None:
    hosts = tuple(f"gpu{number:05}" for number in range(20_000))
    notifier = told.notifier(command="true", header=RunHeader("r1", "verify", hosts, "i"))
    notifier.end(ENDED)
    settle()
    assert told.warned == []


def test_a_folder_that_is_gone_is_a_warning(told: Told, tmp_path: Path) -> None:
    notifier = Notifier("true", HEADER, Redactor(()), told.warned.append, tmp_path / "gone")
    notifier.end(ENDED)
    settle()
    assert told.warned == ["--notify: the command was not started: No such file or directory"]


def test_without_a_command_nothing_is_begun(told: Told) -> None:
    before = set(threading.enumerate())
    notifier = Notifier("", HEADER, Redactor(()), told.warned.append)
    notifier(HostEnded("gpu01", "failed"))
    notifier.end(ENDED)
    assert set(threading.enumerate()) <= before


def test_only_some_failures_are_named_in_the_text(told: Told) -> None:
    hosts = tuple(f"gpu{number:02}" for number in range(1, 31))
    notifier = told.notifier(header=RunHeader("r1", "verify", hosts, "i"))
    for host in hosts[:29]:
        notifier(HostEnded(host, "unreachable", "refused"))
    notifier.end(ENDED)
    lines = told.all()[-1]["text"].splitlines()
    assert lines[0].startswith("verify on 30 hosts: 29 unreachable, 1 untouched")
    assert (len(lines), lines[-1]) == (12, "… and 19 more")
    assert len(told.all()[-1]["failed"]) == 29
