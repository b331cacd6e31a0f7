"""A new user's terminal: a login shell with a pseudo-terminal on a lab host with only Python.

Commands are typed as the page prints them. Confirmations get a yes, and prompts with a default get the default.
"""

from __future__ import annotations

import re
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import paramiko

from lab.config import USER, Machine

WIDTH = 100
LONGEST_S = 1200.0
_PROMPT = "@@{}@@"
_DONE = re.compile(r"@@(\d+)@@")
_ANSWERS = {re.compile(r"Type yes to go on: $"): b"yes\n", re.compile(r"\? \[[^\]\n]+\] $"): b"\n"}
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\r")


@dataclass(frozen=True, slots=True)
class Typed:
    """One command of the page, with its output and result."""

    command: str
    status: int
    seen: str  #: output without escape codes, including text that a live view overwrote
    took_s: float


class Desk:
    """The terminal; the ``with`` statement that opens it also closes it."""

    def __init__(self, machine: Machine) -> None:
        self._client = paramiko.SSHClient()
        self._client.load_host_keys(str(machine.lab.known_hosts))
        self._client.connect(
            str(machine.address), username=USER, key_filename=str(machine.lab.private_key), look_for_keys=False
        )
        self._shell = self._client.invoke_shell(term="xterm-256color", width=WIDTH, height=40)
        self._shell.settimeout(LONGEST_S)
        self._shell.sendall(f"stty -echo; PROMPT_COMMAND=; PS1={shlex.quote(_PROMPT.format('$?'))}; PS2=\n".encode())
        self._until_done()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def put(self, source: Path, target: str) -> None:
        """Copy a file below the user's home, owned by the user."""
        with self._client.open_sftp() as files:
            for parent in reversed(PurePosixPath(target).parents[:-1]):
                with suppress(OSError):  # the directory exists
                    files.mkdir(str(parent))
            files.put(str(source), target)

    def write(self, text: str, target: str) -> None:
        """Write a file in the shell's directory, as an editor does."""
        assert self.type(f"cat >{shlex.quote(target)} <<'END'\n{text}\nEND").status == 0

    def type(self, command: str) -> Typed:
        """Type a command and wait for its end. Raises ``TimeoutError`` after 20 minutes."""
        began = time.monotonic()
        self._shell.sendall(f"{command}\n".encode())
        seen, status = self._until_done()
        return Typed(command, status, seen, time.monotonic() - began)

    def _until_done(self) -> tuple[str, int]:
        seen, answered = "", 0
        while not (done := list(_DONE.finditer(seen))):
            data = self._shell.recv(65536)
            assert data, f"the connection ended after: {seen[-2000:]}"
            seen = _ESCAPES.sub("", seen + data.decode(errors="replace"))
            for answer in (answer for question, answer in _ANSWERS.items() if question.search(seen[answered:])):
                answered = len(seen)
                self._shell.sendall(answer)
        return seen[: done[-1].start()], int(done[-1][1])
