"""Tests that output of a login shell before each command becomes a note of the host's plan, detected once."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field

import pytest

from hostwright.common.errors import ProtocolError
from hostwright.inventory import Host
from hostwright.plan.host import drained, locks
from hostwright.plan.model import Probe
from hostwright.plan.observing import ask
from hostwright.plan.planning import LOGIN_SHELL, notes_on
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell

HELLO = Probe("echo hello")


@dataclass
class Talking:
    """A session on this machine whose login shell prints ``noise``. It records the commands that it gets."""

    noise: bytes = b""
    noise_note: str = ""
    host: Host = field(default_factory=lambda: Host("gpu01"))
    programs: list[bytes] = field(default_factory=list)

    def run(self, command: str, *, stdin: bytes, timeout_s: float, cap_bytes: int, **_: object) -> Output:
        self.programs.append(stdin)
        if b"getent passwd" in stdin:
            return Output(0, b"/bin/bash\n~/.bashrc\n", b"", False, 0.0)
        done = subprocess.run(
            ["/bin/sh", "-c", command], input=stdin, capture_output=True, check=False, timeout=timeout_s
        )
        return Output(done.returncode, done.stdout[:cap_bytes], done.stderr, False, 0.0)


def test_a_quiet_shell_is_not_asked() -> None:
    session = Talking()
    facts = ask(RootShell(session), [HELLO])  # type: ignore[arg-type]
    assert LOGIN_SHELL not in facts
    assert len(session.programs) == 1


def test_the_probes_after_one_that_prints_without_end_are_asked_again() -> None:
    session, endless, after = Talking(), Probe("yes", cap_bytes=1000), Probe("echo $((1 + 1))")
    facts = ask(RootShell(session), [HELLO, endless, Probe("yes n", cap_bytes=2000), after])  # type: ignore[arg-type]
    assert [(answer.status, len(answer.text), answer.truncated) for answer in facts.values()] == [
        (0, 6, False), (141, 1000, True), (141, 2000, True), (0, 2, False),
    ]  # fmt: skip
    assert len(session.programs) == 3


def test_a_host_of_which_every_answer_is_endless_is_left_after_some_rounds() -> None:
    session = Talking()
    with pytest.raises(ProtocolError, match="more than 8 answers of the host are too long"):
        ask(RootShell(session), [Probe(f"yes {number}", cap_bytes=1000) for number in range(50)])  # type: ignore[arg-type]
    assert len(session.programs) == 8


def test_noise_is_a_note_that_names_the_start_file() -> None:
    session = Talking(b"\033[?25hWelcome\n")
    facts = [ask(RootShell(session), [HELLO]) for _ in range(2)][1]  # type: ignore[arg-type]
    assert facts[HELLO].text == "hello\n"
    assert len(session.programs) == 3, "two observations, and one question about start files"
    assert facts[LOGIN_SHELL].text.startswith(
        'its login shell (/bin/bash) prints "\N{REPLACEMENT CHARACTER}[?25hWelcome" before each command, from ~/.bashrc'
    )


def test_the_note_stands_among_the_others() -> None:
    facts = ask(RootShell(Talking(b"Welcome\n")), [locks.LOCK, locks.RUN_LOCK, drained.DRAINED])  # type: ignore[arg-type]
    assert any(note.startswith("its login shell") for note in notes_on(facts, None))
