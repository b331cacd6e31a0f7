"""Reads the durations of a stack's steps in past runs from the journals of these runs."""

from __future__ import annotations

import re
import statistics
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from hostwright.apply.host.scheduling.durations import Key
from hostwright.apply.journal.reading import summary_of
from hostwright.apply.journal.records import RUNNING
from hostwright.apply.journal.results import parsed
from hostwright.common.places import JOURNAL, runs_dir

MOST_RUNS, MOST_LOOKED_AT = 5, 30  #: maximum number of past runs to use, and maximum number to search (our choice)
MOST_BYTES = 4 << 20  #: maximum number of bytes to read from a run's journal, enough for about 70 hosts

_READ = re.compile(rb'\{"kind": "(observed|role finished)"')  #: pattern of the beginning of journal records to parse


class PastRuns:
    """The durations of steps in the recorded runs below ``root``, by stack. Thread-safe.

    The journals are read on the first request for a stack.
    """

    def __init__(self, root: Path):
        self._root = root
        self._lock = threading.Lock()
        self._known: dict[str, Mapping[Key, float]] = {}

    def of(self, stack: str) -> Mapping[Key, float]:
        """Return the median seconds of each step of ``stack``; empty if no run of this stack was recorded."""
        with self._lock:
            if stack not in self._known:
                self._known[stack] = _past(self._root, stack)
            return self._known[stack]


def _past(root: Path, stack: str) -> Mapping[Key, float]:
    took: dict[Key, list[float]] = {}
    runs = (found for folder in _newest(root) if (found := [*_steps(folder / JOURNAL, stack)]))
    for steps in islice(runs, MOST_RUNS):
        for key, seconds in steps:
            took.setdefault(key, []).append(seconds)
    return {key: statistics.median(some) for key, some in took.items()}


def _newest(root: Path) -> Iterator[Path]:
    try:
        folders = sorted((entry for entry in runs_dir(root).iterdir() if entry.is_dir()), reverse=True)
    except OSError:
        return
    yield from (folder for folder in folders[:MOST_LOOKED_AT] if summary_of(folder).state != RUNNING)


def _steps(journal: Path, stack: str) -> Iterator[tuple[Key, float]]:
    stacks: dict[str, str] = {}
    for line in _lines(journal):
        match parsed(line):
            case {"kind": "observed", "host": str(host), "plan": {"stack": str(name)}}:
                stacks[host] = name
            case {"host": str(host), "role": str(role), "steps": list(steps)} if stacks.get(host) == stack:
                yield from _of_role(role, steps)


def _of_role(role: str, steps: Iterable[Any]) -> Iterator[tuple[Key, float]]:
    numbers: Counter[str] = Counter()
    for step in steps:
        match step:
            case {"what": str(what), "status": status, "duration_s": float() | int() as seconds}:
                if status == 0:
                    yield (role, what, numbers[what]), max(0.0, float(seconds) - _waited(step))
                numbers[what] += 1


def _waited(step: Mapping[str, Any]) -> float:
    waited = step.get("waited_s")
    return float(waited) if isinstance(waited, float | int) else 0.0


def _lines(journal: Path) -> Iterator[bytes]:
    read = 0
    try:
        with journal.open("rb") as file:
            for line in file:
                read += len(line)
                if read > MOST_BYTES:
                    return
                if _READ.match(line):
                    yield line
    except OSError:
        return
