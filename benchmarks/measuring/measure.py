"""Measurement of one run of a command."""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from benchmarks.figures.sample import Sample
from benchmarks.measuring.command import Command, Done
from benchmarks.measuring.controlgroup import ControlGroup, control_group
from benchmarks.measuring.traffic import through
from lab import cgroups

LOOK_S = 0.05  #: seconds between two samples of a command's memory
OUTPUT_BYTES = 8 << 20  #: maximum number of stored bytes of each output stream of a command
REST_S = 2.0  #: maximum seconds to read remaining output after the end of a command
HOST_CPU = "hosts_cpu_s"  #: name in ``Sample.extra`` of the processor seconds of all hosts
TIMED_OUT = -1  #: exit status that is recorded for a command after its time limit

_numbers = itertools.count()


def measure(command: Command, round_: int) -> Done:
    """Measure a run of ``command`` in a control group. Remaining processes are killed."""
    command.before()
    with control_group(f"{os.getpid()}-{next(_numbers)}") as group, tempfile.TemporaryFile() as err:
        return _run(command, round_, group, err)


def _run(command: Command, round_: int, group: ControlGroup, err: IO[bytes]) -> Done:
    words = group.entering
    if command.netns:
        words += ["nsenter", f"--net={command.netns}", "--"]
    traffic = through(command.cable) if command.cable else None
    before_s = sum(map(cgroups.cpu_s, command.hosts))
    with _memory(group) as memory, tempfile.TemporaryFile() as stdin:
        stdin.write(command.stdin)
        stdin.seek(0)
        began_s = time.perf_counter()
        process = subprocess.Popen(
            [*words, *command.words],
            stdin=stdin, stdout=subprocess.PIPE, stderr=err, cwd=command.cwd, env={**_environment(), **command.env},
            start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        reader = _Reader(process.stdout)
        reader.start()
        status = _wait(process, command.timeout_s)
        wall_s = time.perf_counter() - began_s
        reader.join(REST_S)
    hosts_s = {HOST_CPU: sum(map(cgroups.cpu_s, command.hosts)) - before_s} if command.hosts else {}
    gone = through(command.cable).since(traffic) if traffic else {}
    sample = Sample(
        command.contender, command.size, command.variant, round_, wall_s, group.cpu_s, *memory.most,
        extra=hosts_s, **gone,
    )  # fmt: skip
    err.seek(0)
    return Done(
        sample, status, bytes(reader.kept).decode(errors="replace"), err.read(OUTPUT_BYTES).decode(errors="replace")
    )


def _environment() -> dict[str, str]:
    """Leave out ``PYTHONDONTWRITEBYTECODE``, which slows programs in a checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class _Reader(threading.Thread):
    """Thread that reads a command's output, even if a child process of the command keeps the pipe open."""

    def __init__(self, stream: IO[bytes]):
        super().__init__(daemon=True)
        self._stream = stream
        self.kept = bytearray()

    def run(self) -> None:
        for line in self._stream:
            self.kept += line[: max(0, OUTPUT_BYTES - len(self.kept))]


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Return the exit status. After ``timeout_s`` seconds, kill the process and return ``TIMED_OUT``."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return TIMED_OUT


class _Most:
    most = (0, 0)


@contextmanager
def _memory(group: ControlGroup) -> Iterator[_Most]:
    seen, over = _Most(), threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            seen.most = max(seen.most, group.memory())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()
