"""Reads the journal of a run on this machine while another process executes the run."""

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

LOOK_S = 0.5  #: seconds between two reads of a journal that does not grow (our choice)


def find(runs: Runs, name: str) -> RunSummary:
    """Return the run with the ID ``name``, or the only run in progress if ``name`` is empty.

    Raises ``InputError`` if no run, or more than one, matches.
    """
    if name:
        return runs.find(name)
    going = [run for run in runs.list() if run.state == RUNNING]
    if len(going) == 1:
        return going[0]
    if going:
        raise InputError(f"{len(going)} runs are in progress; name one: {', '.join(run.run for run in going)}", "--run")
    raise InputError(
        "no run is in progress on this machine; to follow a run of another machine, name some of its hosts, for "
        "example --hosts gpu01",
        "--run",
    )


def records(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the records of the run in ``folder`` as they are written, from the first on.

    Ends when the run has ended, or the process of the run is gone.
    """
    pause = threading.Event()
    journal, header = folder / JOURNAL, summary_of(folder).header
    try:
        with journal.open("rb") as file:
            rest = b""
            while True:
                # This check must precede the last read, so that no record is missed.
                going = in_progress(journal, header)
                *lines, rest = (rest + file.read()).split(b"\n")
                for record in filter(None, map(parsed, lines)):
                    yield record
                    if record["kind"] == RUN_ENDED:
                        return
                # If the journal was deleted while it was read, no further records can follow.
                if not going or not os.fstat(file.fileno()).st_nlink:
                    return
                pause.wait(LOOK_S)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", str(journal)) from error
