"""Ctrl-C at five moments, typed at a real terminal: one sentence says what is left, and the status is 130."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.cli.mistakes.desk import Desk

PATIENCE_S = 120.0  #: a loaded machine takes 20 s for the first words
CTRL_C = b"\x03"
NOTHING = "stopped; nothing was changed"
QUIETLY = "stopped at the question: nothing was changed"


@dataclass
class Terminal:
    """A verb at work at a terminal of its own."""

    process: subprocess.Popen[bytes]
    keyboard: int
    screen: str = ""

    def reads(self, until: Callable[[], bool]) -> None:
        """Read what is shown until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        os.set_blocking(self.keyboard, False)
        while not until():
            assert time.monotonic() < deadline, self.screen
            try:
                self.screen += os.read(self.keyboard, 65536).decode("utf-8", "replace")
            except BlockingIOError:
                assert self.process.poll() is None or until(), self.screen
                time.sleep(0.02)
            except OSError:  # its other end is closed: the verb has ended
                assert until(), self.screen

    def ended(self) -> int:
        """Its exit status, once all that it shows is on the screen."""
        status = self.process.wait(PATIENCE_S)
        with suppress(OSError):
            while more := os.read(self.keyboard, 65536):
                self.screen += more.decode("utf-8", "replace")
        return status


@contextmanager
def terminal(desk: Desk, line: str, **env: str) -> Iterator[Terminal]:
    """Type a line at a terminal, whose Ctrl-C is heard by what it starts."""
    ours, theirs = pty.openpty()
    words = [
        "env",
        "--default-signal=INT",
        "setsid",
        "--ctty",
        "--wait",
        sys.executable,
        "-m",
        "hostwright",
        *line.split(),
    ]
    process = subprocess.Popen(
        words, cwd=desk.site, env=desk.environment({"TERM": "dumb", **env}), stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@contextmanager
def silent() -> Iterator[tuple[socket.socket, int]]:
    """A port whose connections are never answered."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(PATIENCE_S)
        yield listening, listening.getsockname()[1]


def stopped(at: Terminal, sentence: str) -> None:
    """Ctrl-C ends it with this sentence, which stands once."""
    os.write(at.keyboard, CTRL_C)
    status = at.ended()
    assert "Traceback" not in at.screen
    assert (status, " ".join(at.screen.split()).count(sentence)) == (130, 1), at.screen


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_while_a_program_of_the_inventory_runs(desk: Desk) -> None:
    desk.write("cloud", "#!/bin/sh\ntouch begun\nexec sleep 600\n", executable=True)
    with terminal(desk, "hosts --inventory cloud") as at:
        at.reads((desk.site / "begun").exists)
        stopped(at, NOTHING)


def test_at_the_prompt_for_a_password(desk: Desk) -> None:
    with terminal(desk, "plan gpu01 --ask-become-pass") as at:
        at.reads(lambda: "sudo password:" in at.screen)
        stopped(at, NOTHING)


def test_at_a_question(desk: Desk) -> None:
    bmc = "hostwright_bmc: https://192.0.2.1, hostwright_bmc_user: a, hostwright_bmc_password: b"
    desk.write("inventory/hosts.yml", f"all: {{hosts: {{gpu01: {{{bmc}}}}}}}\n")
    with terminal(desk, "power cycle gpu01") as at:
        at.reads(lambda: "Type yes to go on:" in at.screen)
        assert "power-cycles gpu01" in at.screen
        stopped(at, QUIETLY)


def test_while_a_host_does_not_answer(desk: Desk) -> None:
    with silent() as (listening, port):
        entry = f"gpu01: {{ansible_host: 127.0.0.1, ansible_port: {port}}}"
        desk.write("inventory/hosts.yml", f"all: {{hosts: {{{entry}}}}}\n")
        with terminal(desk, "plan gpu01") as at:
            connection, _ = listening.accept()
            with connection:
                stopped(at, NOTHING)


def test_while_a_file_is_downloaded(desk: Desk) -> None:
    with silent() as (listening, port):
        proxy = f"http://127.0.0.1:{port}"
        store = str(desk.folder / "mirror")
        with terminal(desk, "mirror", https_proxy=proxy, HTTPS_PROXY=proxy, HOSTWRIGHT_ARTIFACTS=store) as at:
            connection, _ = listening.accept()
            with connection:
                stopped(at, "stopped; what was downloaded is kept, and the same command again goes on from there")
