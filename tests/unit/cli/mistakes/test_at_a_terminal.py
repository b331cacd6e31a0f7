"""Ctrl-C at five moments, typed at a real terminal: one sentence describes the result, and the status is 130."""

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

from tests.unit.cli.mistakes.desk import Desk
from tests.unit.cli.mistakes.rack import GO, HELLO, Rack, rack

PATIENCE_S = 120.0  #: a loaded machine takes 20 s for the first output
CTRL_C = b"\x03"
NOTHING = "stopped; nothing was changed"
QUIETLY = "stopped at the prompt: nothing was changed"


@dataclass
class Terminal:
    """A running verb at its own terminal."""

    process: subprocess.Popen[bytes]
    keyboard: int
    screen: str = ""

    def reads(self, until: Callable[[], bool]) -> None:
        """Read the screen until a condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        os.set_blocking(self.keyboard, False)
        while not until():
            assert time.monotonic() < deadline, self.screen
            try:
                self.screen += os.read(self.keyboard, 65536).decode("utf-8", "replace")
            except BlockingIOError:
                assert self.process.poll() is None or until(), self.screen
                time.sleep(0.02)
            except OSError:  # the other end is closed: the verb has ended
                assert until(), self.screen

    def ended(self) -> int:
        """Return the exit status, once all output is on the screen."""
        status = self.process.wait(PATIENCE_S)
        with suppress(OSError):
            while more := os.read(self.keyboard, 65536):
                self.screen += more.decode("utf-8", "replace")
        return status


@contextmanager
def terminal(desk: Desk, line: str, **env: str) -> Iterator[Terminal]:
    """Type a line at a terminal whose Ctrl-C reaches the started process."""
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
    """Return a port that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.settimeout(PATIENCE_S)
        yield listening, listening.getsockname()[1]


def stopped(at: Terminal, sentence: str) -> None:
    """Press Ctrl-C, and check that the verb ends with this sentence, shown once."""
    os.write(at.keyboard, CTRL_C)
    status = at.ended()
    assert "Traceback" not in at.screen
    assert (status, " ".join(at.screen.split()).count(sentence)) == (130, 1), at.screen


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
                stopped(at, "stopped; downloaded files are kept, and the same command continues from there")


@contextmanager
def changing(desk: Desk) -> Iterator[tuple[Rack, Terminal]]:
    """Start a change, and wait until one host is in its middle and another is done."""
    with rack(desk, "gpu01", "gpu02") as hosts:
        hosts.on("gpu02", f"touch {GO}")
        with terminal(desk, "provision gpu01 gpu02 --var hello_slowly=true") as at:
            at.reads(lambda: "gpu02  as desired" in at.screen and hosts.on("gpu01", f"cat {HELLO}"))
            os.write(at.keyboard, CTRL_C)
            at.reads(lambda: "stopping" in at.screen)
            yield hosts, at


def test_once_while_a_host_is_changed(desk: Desk) -> None:
    """The current step ends first. If nothing is left then, there is nothing to continue."""
    with changing(desk) as (hosts, at):
        hosts.on("gpu01", f"touch {GO}")
        status = at.ended()
        ending = " ".join(at.screen.partition("host   result")[2].split())
        assert (status, "Traceback" in at.screen) == (0, False), at.screen
        assert "2 changed" in ending and "hostwright runs.show --run" in ending
        assert "To continue" not in ending


def test_twice_while_a_host_is_changed(desk: Desk) -> None:
    """The job on the host continues. The table reports it, with the command that follows it."""
    with changing(desk) as (hosts, at):
        os.write(at.keyboard, CTRL_C)
        status = at.ended()
        shown = " ".join(at.screen.split())
        assert (status, "Traceback" in shown) == (130, False), at.screen
        for part in (
            "cut off before its end",
            "2 hosts in",
            "stopped",
            "Jobs that run on the hosts go on",
            "re-attaches to them",
        ):
            assert part in shown, at.screen
        hosts.on("gpu01", f"touch {GO}")
        assert desk.types("provision --resume").status == 0
