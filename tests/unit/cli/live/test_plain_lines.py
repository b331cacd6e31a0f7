"""The plain lines of a run, and when they replace the table."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from hostwright.apply import events
from hostwright.cli.console import make_console
from hostwright.cli.live.plain import Plain
from hostwright.cli.live.table import LiveTable
from hostwright.cli.views.progress import run_view
from hostwright.common.durations import Clock
from hostwright.common.request import Request
from hostwright.fleet import TargetHost
from tests.unit.cli.live.runs import story

RUN = "20261124t001500-ab12"
TIMES = Clock(time_of_day=lambda: "09:05:01")


class Terminal(io.StringIO):
    """A stream that reports to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the variables of an ordinary terminal of 60 columns."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def plain(monkeypatch: pytest.MonkeyPatch, *told: events.Event, run: str = "") -> list[str]:
    """Return the output in a pipe."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with Plain(make_console(), run, 2, clock=TIMES) as view:
        for event in told:
            view(event)
    return lines(stream)


def test_the_lines_begin_with_the_run_s_id_and_each_with_the_time_of_day(monkeypatch: pytest.MonkeyPatch):
    assert plain(monkeypatch, events.Note("gpu01", "hello"), events.Note("", "of the run"), run=RUN) == [
        f"09:05:01  run {RUN}: 2 hosts",
        "09:05:01  gpu01  hello",
        "09:05:01  of the run",
    ]


def test_each_thing_is_said_once(monkeypatch: pytest.MonkeyPatch):
    assert [line.removeprefix("09:05:01  gpu01  ") for line in plain(monkeypatch, *story("gpu01"))] == [
        "1 change: storage",
        "storage: sending storage.deb (10 B)",
        "storage: storage.deb is on the host (10 B)",
        "storage: 3 steps",
        "rebooting: new module",
        "storage: ok after 1.0 s",
        "as desired",
    ]


def test_transfers_of_several_layers_at_once_are_said_once_each(monkeypatch: pytest.MonkeyPatch):
    told = [
        events.Delivering("gpu01", layer, f"{layer}.deb", done, 100) for done in (10, 50, 100) for layer in ("a", "b")
    ]
    assert len(plain(monkeypatch, *told)) == 4


def test_each_reason_for_waiting_is_a_line(monkeypatch: pytest.MonkeyPatch):
    """A reboot takes half an hour, so its phases are in a log as well."""
    reasons = ("a connection", "its answers", "the reboot: going down", "the reboot: sshd answers")
    assert plain(monkeypatch, *(events.Waiting("gpu01", what) for what in reasons)) == [
        "09:05:01  gpu01  waiting for the reboot: going down",
        "09:05:01  gpu01  waiting for the reboot: sshd answers",
    ]


def test_a_repeated_note_of_a_host_is_printed_once(monkeypatch: pytest.MonkeyPatch):
    told = [events.Note("gpu01", text) for text in ("one", "one", "two", "one")]
    assert [line.split()[-1] for line in plain(monkeypatch, *told)] == ["one", "two", "one"]


def refused(host: str, number: int) -> events.Event:
    return events.Retrying(host, "connection", number, 0.1 * number, "refused")


HOSTS = [f"gpu{number:02}" for number in range(1, 41)]


def test_the_same_failure_of_many_hosts_is_one_line_as_at_a_terminal(monkeypatch: pytest.MonkeyPatch):
    told = [refused(host, number) for number in range(4) for host in HOSTS]
    told += [events.HostEnded(host, "unreachable", "refused: is sshd running?") for host in HOSTS]
    assert plain(monkeypatch, *told) == [
        "09:05:01  gpu[01-40]  connection: refused; retrying",
        "09:05:01  gpu[01-40]  unreachable: refused: is sshd running?",
    ]


def test_what_a_host_does_next_comes_behind_its_trouble(monkeypatch: pytest.MonkeyPatch):
    assert plain(monkeypatch, refused("gpu01", 1), events.Note("gpu02", "b"), events.Note("gpu01", "a")) == [
        "09:05:01  gpu02  b",
        "09:05:01  gpu01  connection: refused; retrying",
        "09:05:01  gpu01  a",
    ]


def test_trouble_is_printed_while_the_run_goes_on(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with Plain(make_console(), "", 2, clock=TIMES, gather_s=0.001) as view:
        view(refused("gpu01", 1))
        for thread in threading.enumerate():
            if thread.name == "plain lines":
                thread.join()
        assert lines(stream) == ["09:05:01  gpu01  connection: refused; retrying"]


def test_no_line_is_wrapped_and_no_text_of_a_host_begins_one(monkeypatch: pytest.MonkeyPatch):
    said = "word " * 400 + "\ngpu02  as desired\x1b[2J\rgpu03  as desired\u2028gpu04  as desired"
    (line,) = plain(monkeypatch, events.HostEnded("gpu01", "failed", said))
    assert line.startswith("09:05:01  gpu01  failed: word word")
    assert line.count("word") == 400
    assert line.endswith("gpu04  as desired")
    assert "\x1b" not in line


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, as_json: bool = False) -> object:
    """Return the output of a run with two hosts after one event."""
    monkeypatch.setattr(sys, "stderr" if as_json else "stdout", stream)
    roles = (SimpleNamespace(name="storage", short="st"),)
    targets = cast(Sequence[TargetHost], [SimpleNamespace(name=name, roles=roles) for name in ("gpu01", "gpu02")])
    view = run_view(Request(json=as_json)).show(targets, RUN)
    with view as tell:
        tell(events.Note("gpu01", "hello"))
    return view


def test_a_terminal_gets_the_table(monkeypatch: pytest.MonkeyPatch):
    stream = Terminal()
    assert isinstance(shown(monkeypatch, stream), LiveTable)
    assert "2 hosts: " in stream.getvalue()
    assert RUN not in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "variables"),
    [
        pytest.param(io.StringIO(), {}, id="pipe"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, id="log with colours"),
        pytest.param(io.StringIO(), {"TTY_COMPATIBLE": "1"}, id="log of CI"),
        pytest.param(Terminal(), {"TERM": "dumb"}, id="terminal that cannot move its cursor"),
    ],
)
def test_what_cannot_be_redrawn_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, variables: dict[str, str]
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert isinstance(shown(monkeypatch, stream), Plain)
    assert [line[8:] for line in lines(stream)] == [f"  run {RUN}: 2 hosts", "  gpu01  hello"]


def test_with_json_the_lines_go_to_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    stream = Terminal()
    assert isinstance(shown(monkeypatch, stream, as_json=True), Plain)
    assert len(lines(stream)) == 2
    assert not capsys.readouterr().out
