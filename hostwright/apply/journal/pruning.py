"""Room for new runs: the oldest records are removed when there are too many or they take too much space."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from hostwright.apply.journal.reading import Runs, RunSummary
from hostwright.apply.journal.records import RUNNING
from hostwright.common.places import runs_dir

KEEP_RUNS = 500
KEEP_BYTES = 1 << 30
KEEP_AT_LEAST = 5  #: runs, however large: `--resume` and `@failed` read the last one
_GOING = ".going-"


def prune(root: Path, spare: str = "") -> tuple[str, ...]:
    """Remove the oldest runs above the limits, never one in progress, nor ``spare``. Return their ids."""
    removed = []
    total_bytes = 0
    for number, summary in enumerate(Runs(root).list(), start=1):
        total_bytes += _size(summary)
        too_much = number > KEEP_RUNS or (total_bytes > KEEP_BYTES and number > KEEP_AT_LEAST)
        if too_much and summary.state != RUNNING and summary.run != spare:
            _remove(summary.folder)
            removed.append(summary.run)
    for left in runs_dir(root).glob(f"{_GOING}*"):  # left by a process that ended while removing a run
        shutil.rmtree(left, ignore_errors=True)
    return tuple(removed)


def _remove(folder: Path) -> None:
    """Rename the run first, so that nobody reads half of it."""
    going = folder.with_name(_GOING + folder.name)
    with suppress(OSError):
        folder.rename(going)
        shutil.rmtree(going, ignore_errors=True)


def _size(summary: RunSummary) -> int:
    """The size of a run's files; measured only for a run that did not end."""
    if summary.size_bytes is not None:
        return summary.size_bytes
    total = 0
    for folder, _, names in os.walk(summary.folder):
        for name in names:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_size
    return total
