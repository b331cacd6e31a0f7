"""The numbers of round trips and messages for reading a host's facts, counted with the tests' sshd."""

from __future__ import annotations

import os
import pwd
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import paramiko
import pytest

from hostwright.plan.model import Probe
from hostwright.plan.observing import ask
from hostwright.transport import connect
from hostwright.transport.identity.negotiating import Transport
from hostwright.transport.root.rootshell import RootShell
from tests.lab.sshd import Sshd, Target, make_key, options, running
from tests.unit.support import counting
from tests.unit.support.turns import Line, line_to

ME = pwd.getpwuid(os.getuid()).pw_name
#: TCP; versions and key exchange offers; keys; login with its service; channel; command; program and answers
TRIPS = 7
#: more than the answers of a provisioned host: 40 probes, 100 kB
PROBES = [Probe(f"seq {number} {number + 500}; exit {number}") for number in range(40)]


@pytest.fixture
def sshd() -> Iterator[Sshd]:
    with running() as server:
        yield server


def line_of(sshd: Sshd) -> AbstractContextManager[Line]:
    assert sshd.process
    return line_to(sshd.port, sshd.process.pid)


def far(sshd: Sshd, line: Line, **changes: object) -> Target:
    """The tests' sshd behind a long line."""
    sshd.known_hosts.write_text(f"[127.0.0.1]:{line.port} {sshd.public_host_key}\n")
    return sshd.target(**{"user": ME, "port": line.port, **changes})


def test_from_nothing_to_all_answers_the_line_is_waited_for_seven_times(sshd: Sshd) -> None:
    with line_of(sshd) as line:
        with connect(far(sshd, line), options()) as session:
            facts = ask(RootShell(session), PROBES)
            trips = line.trips
        assert session.execs == 1
    assert [answer.status for answer in facts.values()] == list(range(40))
    assert trips <= TRIPS, line.flights


def test_while_nothing_comes_no_thread_looks_often(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polling threads would take most of the CPU time for many slow hosts. Here no thread polls within the test's time,
    and all waits still end: data, and the end of the connection, wake the waiting threads.
    """
    monkeypatch.setattr(Transport, "_active_check_timeout", 3600.0)
    waits: list[float | None] = []
    real = threading.Event.wait
    monkeypatch.setattr(
        threading.Event, "wait", lambda event, timeout=None: waits.append(timeout) or real(event, timeout)
    )
    with connect(sshd.target(user=ME), options()) as session:
        often = waits.count(0.1)
        assert len(ask(RootShell(session), PROBES)) == len(PROBES)
        transport = session._connection.transport  # type: ignore[attr-defined]
    transport.join(60)
    assert not transport.is_alive()
    assert often <= 1, "paramiko looks at its event ten times a second, here only when it is set"


def test_an_open_connection_costs_three_more(sshd: Sshd) -> None:
    with line_of(sshd) as line, connect(far(sshd, line), options()) as session:
        ask(RootShell(session), PROBES[:3])
        before = line.trips
        ask(RootShell(session), PROBES)
        assert line.trips - before <= 4, "the end of the first command is another flight"


def test_a_key_of_rsa_waits_for_what_the_server_takes(sshd: Sshd, tmp_path: Path) -> None:
    key = make_key(tmp_path / "rsa", "-t", "rsa", "-b", "2048")
    (sshd.folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    with line_of(sshd) as line, connect(far(sshd, line, key_file=str(key)), options()) as session:
        assert session.run("echo there", timeout_s=20).stdout == b"there\n"
        assert line.trips <= TRIPS + 1


def test_a_key_that_is_refused_is_followed_by_the_next(sshd: Sshd, tmp_path: Path) -> None:
    """The second login requests the service again, like paramiko: OpenSSH grants it each time."""
    other = make_key(tmp_path / "other")
    config = tmp_path / "config"
    config.write_text(f"IdentityFile {sshd.key}\n")
    with connect(sshd.target(user=ME, key_file=str(other)), options(ssh_config=config)) as session:
        assert session.run("echo there", timeout_s=20).stdout == b"there\n"


def test_a_server_that_is_not_opensshs_is_asked_for_the_service_first(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostwright.transport.identity.negotiating._OPENSSH", "SSH-2.0-Other_")
    with line_of(sshd) as line, connect(far(sshd, line), options()) as session:
        ask(RootShell(session), PROBES)
        assert line.trips <= TRIPS + 1


def test_answers_come_in_few_messages(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages besides the answers: keys, login, channel, marks of the frame, end. Each takes the controller 0.2 ms."""
    took = counting.counted(monkeypatch)
    data: Counter[str] = Counter()
    read = paramiko.Channel._feed

    def fed(channel: paramiko.Channel, message: paramiko.Message) -> None:
        data["messages"] += 1
        read(channel, message)

    monkeypatch.setattr(paramiko.Channel, "_feed", fed)
    with connect(sshd.target(user=ME), options()) as session:
        facts = ask(RootShell(session), PROBES)
    size = sum(len(answer.text) for answer in facts.values())
    assert size > 75_000
    assert data["messages"] <= 6, "the frame's two marks, and blocks of 16 KiB"
    assert took["messages"] <= 26
    assert took["bytes"] < size / 2
