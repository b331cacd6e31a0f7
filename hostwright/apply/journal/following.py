"""A run that is recorded on this machine, read while it goes on: by whoever started it in another terminal, or by a
colleague who keeps the same records."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hostwright.apply.journal.reading import Runs, RunSummary, in_progress, summary_of
from hostwright.apply.journal.records import RUN_ENDED, RUNNING
from hostwright.apply.journal.results import parsed
from hostwright.common.errors import InputError
from hostwright.common.places import JOURNAL

LOOK_S = 0.5  #: our choice, between two looks at a file that does not grow


def find(runs: Runs, name: str) -> RunSummary:
    """The run with that id, or the one in progress where ``name`` is empty. Raises ``InputError``."""
    if name:
        return runs.find(name)
    going = [run for run in runs.list() if run.state == RUNNING]
    if len(going) == 1:
        return going[0]
    if going:
        raise InputError(f"{len(going)} runs are in progress: {', '.join(run.run for run in going)}", "--run")
    raise InputError(
        "no run is in progress on this machine. To follow one that was started on another, name hosts that it works "
        "on: --hosts gpu01",
        "--run",
    )


def records(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The records of a run, from its first on and as they are written, until it ends or its process is gone."""
    pause = threading.Event()
    journal, header = folder / JOURNAL, summary_of(folder).header
    try:
        with journal.open("rb") as file:
            rest = b""
            while True:
                going = in_progress(journal, header)  # before the last look: what it wrote before its end is read
                *lines, rest = (rest + file.read()).split(b"\n")
                for record in filter(None, map(parsed, lines)):
                    yield record
                    if record["kind"] == RUN_ENDED:
                        return
                if not going or not os.fstat(file.fileno()).st_nlink:  # its record was removed meanwhile
                    return
                pause.wait(LOOK_S)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(journal)) from error
