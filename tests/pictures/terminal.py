"""A real terminal emulator: a pane of a tmux of the tests' own, behind a private socket, and what it shows."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO

from tests.places import PROJECT

PATIENCE_S = 300.0  #: for one command, on a machine that has much else to do
HISTORY = 20_000  #: lines that the pane remembers
HEIGHT = 24
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|.)")
POLL_S = 0.05
#: of the user who runs the tests: nothing of this may decide how a picture looks
DROPPED = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS", "LINES", "TMUX", "CI")


@dataclass(frozen=True)
class Shot:
    """What a pane showed: all of it with its escape sequences, and the part that is on the screen."""

    width: int
    ansi: str
    joined: tuple[str, ...]  #: all lines, those that the terminal wrapped put together again
    screen: tuple[str, ...]  #: the last lines, without escape sequences
    status: int | None  #: of a command that has ended

    @property
    def lines(self) -> tuple[str, ...]:
        """All lines without escape sequences."""
        return tuple(ESCAPE.sub("", self.ansi).split("\n"))

    @property
    def wrapped(self) -> list[str]:
        """The lines that only the terminal broke: what is too long for it stands in no column any more."""
        return [line for line in self.joined if len(line) > self.width]


@dataclass
class Terminal:
    """A tmux server with one pane, in which verbs are carried out one after the other (``replay``)."""

    folder: Path
    _orders: IO[str] = field(init=False)
    _numbers: Iterator[int] = field(default_factory=count)
    _status: Path | None = None
    _width: int = 0

    def call(self, *words: str, check: bool = True) -> str:
        """One command of tmux's, and its output."""
        tmux = ("tmux", "-S", str(self.folder / "tmux"), "-f", os.devnull)
        return subprocess.run([*tmux, *words], check=check, capture_output=True, text=True, timeout=PATIENCE_S).stdout

    def start(self, site: Path) -> None:
        """The server, and the program that waits for orders."""
        pipe = self.folder / "orders"
        os.mkfifo(pipe)
        given = {"TERM": "tmux-256color", "PYTHONPATH": str(PROJECT), "HOSTWRIGHT_STATE": str(self.folder / "state")}
        drop = [word for name in DROPPED for word in ("-u", name)]
        program = [sys.executable, "-m", "tests.pictures.replay", str(pipe)]
        command = shlex.join(["env", *drop, *(f"{name}={value}" for name, value in given.items()), *program])
        session = ["new-session", "-d", "-x", "80", "-y", str(HEIGHT), "-c", str(site), command]
        settings = ["set", "-g", "status", "off", ";", "set", "-g", "window-size", "manual"]
        self.call("set", "-g", "history-limit", str(HISTORY), ";", *session, ";", *settings)
        self._orders = pipe.open("w", encoding="utf-8")  # waits until the program reads

    def end(self) -> None:
        """The server ends with its pane."""
        self.call("kill-server", check=False)

    def begin(
        self,
        words: Sequence[str],
        *,
        width: int,
        height: int = HEIGHT,
        env: Mapping[str, str] | None = None,
        into: Path | None = None,
    ) -> None:
        """Let a verb begin on an empty screen of that size; ``into`` is a file that gets its standard output."""
        self.call("send-keys", "-R", ";", "resize-window", "-x", str(width), "-y", str(height), ";", "clear-history")
        self._width, self._status = width, self.folder / f"status-{next(self._numbers)}"
        order = {
            "words": list(words), "env": dict(env or {}), "width": width, "status": str(self._status),
            "into": str(into or ""),
        }  # fmt: skip
        self._orders.write(json.dumps(order) + "\n")
        self._orders.flush()

    def keys(self, *keys: str) -> None:
        """What somebody types, by tmux's names of keys."""
        self.call("send-keys", *keys)

    def shown(
        self, words: Sequence[str], *, width: int, env: Mapping[str, str] | None = None, into: Path | None = None
    ) -> Shot:
        """What a verb showed when it has ended."""
        self.begin(words, width=width, env=env, into=into)
        return self.ended()

    def ended(self) -> Shot:
        """What is shown when the verb has ended."""
        return self.until(lambda shot: shot.status is not None)

    def sent(self, words: Sequence[str], *, width: int, env: Mapping[str, str]) -> str:
        """All that a verb sent to the terminal, as it sent it."""
        file = self.folder / "sent"
        file.unlink(missing_ok=True)
        self.call("pipe-pane", f"cat >{shlex.quote(str(file))}")
        self.shown(words, width=width, env=env)
        self.call("pipe-pane")
        return file.read_text("utf-8")

    def until(self, true: Callable[[Shot], bool]) -> Shot:
        """What is shown as soon as that is true of it."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            shot = self.shot()
            if true(shot):
                return shot
            time.sleep(POLL_S)
        raise AssertionError("it never came to that:\n" + "\n".join(self.shot().screen))

    def shot(self) -> Shot:
        """What is shown now."""
        status = int(self._status.read_text()) if self._status and self._status.exists() else None
        ansi = self.call("capture-pane", "-p", "-e", "-S", "-").rstrip("\n")
        joined = self.call("capture-pane", "-p", "-J", "-S", "-").rstrip("\n")
        screen = self.call("capture-pane", "-p").rstrip("\n")
        lines = tuple(line.rstrip() for line in joined.split("\n"))
        return Shot(self._width, ansi, lines, tuple(screen.split("\n")), status)


@contextmanager
def terminal(folder: Path, site: Path) -> Iterator[Terminal]:
    """A terminal in the directory of a site, which is ended with the block."""
    made = Terminal(folder)
    try:
        made.start(site)
        yield made
    finally:
        made.end()
