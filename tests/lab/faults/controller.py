"""``invoke`` as a user runs it: a separate process, its output lines with times, and SIGKILL."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.places import PROJECT

INVOKE = Path(sys.executable).with_name("invoke")
#: A line about a host in the format of ``hostwright.cli.live.plain.Plain``: ``09:05:01  gpu01  5 changes: base``
HOST_LINE = re.compile(r"^\d\d:\d\d:\d\d  (?!run )")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of output, with the seconds since the process started."""

    at_s: float
    text: str


class Controller:
    """One ``invoke`` process, whose standard output and standard error are read as they come."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]):
        self.words = tuple(words)
        self.lines: list[Line] = []
        self.killed = False
        self.began_s = time.monotonic()
        self.began_unix_s = time.time()
        self._ended_s: float | None = None
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [INVOKE, *words],
            cwd=PROJECT,
            env={**os.environ, "COLUMNS": "400", "PYTHONUNBUFFERED": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            with self._news:
                self.lines.append(Line(self.age_s, text.rstrip("\n")))
                self._news.notify_all()
        self._process.wait()
        with self._news:
            self._ended_s = self.age_s
            self._news.notify_all()

    @property
    def age_s(self) -> float:
        """Seconds since the process started."""
        return time.monotonic() - self.began_s

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._ended_s is None

    @property
    def status(self) -> int | None:
        """Exit status (negative: the signal that ended it); ``None`` while the process runs."""
        return None if self.running else self._process.returncode

    @property
    def seconds(self) -> float:
        """Duration of the process, until now or until its end."""
        return self._ended_s if self._ended_s is not None else self.age_s

    @property
    def output(self) -> str:
        """All output so far."""
        return "\n".join(line.text for line in self.lines)

    def find(self, pattern: str) -> Line | None:
        """Return the first line that matches a regular expression."""
        return next((line for line in list(self.lines) if re.search(pattern, line.text)), None)

    def first_host_line(self) -> Line | None:
        """Return the first line about a host."""
        return next((line for line in list(self.lines) if HOST_LINE.match(line.text)), None)

    def wait(self, until: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition on the output holds or the process ends; return whether the condition holds."""
        with self._news:
            self._news.wait_for(lambda: until() or not self.running, timeout_s)
            return until()

    def wait_end(self, timeout_s: float) -> bool:
        """Wait for the end of the process; return whether it ended."""
        with self._news:
            return self._news.wait_for(lambda: not self.running, timeout_s)

    def kill(self) -> None:
        """Kill the process with SIGKILL, so that it can neither print nor clean up."""
        self.killed = True
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
        self.wait_end(10.0)
