"""Finds recorded runs and their state, from the first and last record of each journal and from the lock on it."""

from __future__ import annotations

import fcntl
import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.records import INTERRUPTED, RUNNING, ending_of, header_of
from hostwright.apply.journal.results import parsed, results_of, scan
from hostwright.apply.journal.runs import RecordedRun, read_run
from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.input.nearest import nearest
from hostwright.common.places import JOURNAL, runs_dir

LAST = "last"
_TAIL_BYTES = 64 * 1024  #: number of bytes at the end of a journal that contain the last record
_EMPTY = RunHeader(run="", verb="", hosts=(), inventory="")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run, from the first and last record of its journal.

    ``state`` is ended, crashed, interrupted or running. ``status`` is the exit status, if any. ``results`` has the
    number of hosts for each result. ``size_bytes`` is set only for a run that ended.

    A run that was killed before its first record has an empty ``header``, and ``began`` is the time of its directory.
    """

    run: str
    folder: Path
    header: RunHeader
    began: str
    state: str
    status: int | None = None
    sentence: str = ""
    duration_s: float | None = None
    results: Mapping[str, int] = field(default_factory=dict)
    size_bytes: int | None = None


class Runs:
    """The recorded runs below the state directory ``root``."""

    def __init__(self, root: Path):
        self.root = root

    def list(self) -> list[RunSummary]:
        """Return the summary of every run, the newest first."""
        try:
            with os.scandir(runs_dir(self.root)) as entries:
                folders = [Path(entry.path) for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        except OSError:
            return []
        return sorted(map(summary_of, folders), key=lambda run: (run.began, run.run), reverse=True)

    def find(self, name: str, where: str = "--run") -> RunSummary:
        """Return the run that ``name`` identifies.

        ``name`` is an ID, the unique beginning of an ID, the unique end of an ID after its hyphen, or ``last``. Raises
        ``InputError`` if no run, or more than one, matches; ``where`` is the option that names the run.
        """
        folder = runs_dir(self.root) / name
        if name and Path(name).name == name and not name.startswith(".") and folder.is_dir():
            return summary_of(folder)
        runs = self.list()
        if not runs:
            raise InputError(f"no run is recorded in {self.root} yet", where)
        matches = runs[:1] if name == LAST else [run for run in runs if name and _is(run.run, name)]
        if len(matches) > 1:
            ids = ", ".join(run.run for run in matches[:4]) + (", …" if len(matches) > 4 else "")
            raise InputError(f"{len(matches)} run IDs begin or end with {name!r}: {ids}", where)
        if not matches:
            like = nearest(name, [run.run for run in runs])
            hint = f"did you mean {like!r}?" if like else f"the latest is {runs[0].run}; {Command('runs')} lists all"
            raise InputError(f"no run is named {name!r}; {hint}", where)
        return matches[0]

    def load(self, name: str) -> RecordedRun:
        """Return the whole record of the run that ``name`` identifies (see ``find``)."""
        summary = self.find(name)
        return read_run(summary.folder, summary.header, running=summary.state == RUNNING)


def short_ids(runs: Iterable[str]) -> dict[str, str]:
    """Return the short ID of each run by its full ID: the part after the hyphen if it is unique, else the full ID.

    >>> short_ids(["20261124t001658-ab12", "20261124t001702-77f0", "20261123t101702-77f0"])["20261124t001658-ab12"]
    'ab12'
    """
    names = [*runs]
    ends = {name: name.rpartition("-")[2] for name in names}
    return {name: ends[name] if sum(_is(each, ends[name]) for each in names) == 1 else name for name in names}


def _is(run: str, name: str) -> bool:
    return run.startswith(name) or run.endswith(f"-{name}")


def summary_of(folder: Path) -> RunSummary:
    """Return the summary of the run in ``folder``. A field that cannot be read stays empty; no error is raised."""
    journal = folder / JOURNAL
    first, last = _ends(journal)
    try:
        header = header_of(first)
    except ValueError:
        header = _EMPTY
    began = header.began or _made(folder)
    if ending := ending_of(last):
        return RunSummary(
            run=folder.name,
            folder=folder,
            header=header,
            began=began,
            state=ending.how,
            status=ending.status,
            sentence=ending.sentence,
            duration_s=ending.t,
            results=ending.results,
            size_bytes=ending.bytes,
        )
    running = in_progress(journal, header)
    counts = Counter(results_of(header.hosts, *scan(journal), running=running).values())
    lasted_s = _since(began) if running else _seconds(last)
    state = RUNNING if running else INTERRUPTED
    return RunSummary(folder.name, folder, header, began, state, duration_s=lasted_s, results=dict(counts))


def _ends(journal: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        with journal.open("rb") as file:
            first = file.readline()
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read()
    except OSError:
        return {}, {}
    whole = (record for line in reversed(tail.splitlines()) if line and (record := parsed(line)))
    return parsed(first) or {}, next(whole, {})


def in_progress(journal: Path, header: RunHeader) -> bool:
    """Return whether the process that writes ``journal`` is alive. The process holds a lock on the file while it is
    alive.

    On a file system without locks, any process on this machine with the process ID in ``header`` counts.
    """
    try:
        with journal.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    except OSError:
        return header.operator.endswith(f"@{socket.gethostname()}") and _alive(header.pid)
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return pid > 0


def _seconds(record: Mapping[str, Any]) -> float | None:
    seconds = record.get("t")
    return float(seconds) if isinstance(seconds, (int, float)) else None


def _since(began: str) -> float | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError):
        return None


def _made(folder: Path) -> str:
    try:
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC).isoformat(timespec="milliseconds")
    except OSError:
        return ""
