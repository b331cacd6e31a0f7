"""Calibration: this machine's processor time for a fixed amount of work. Goals compare times with the calibration."""

from __future__ import annotations

import json
import os
import subprocess
import time

TRIES = 3  #: number of calibration runs. The fastest run is used (our choice).
#: numbers of documents to convert and of processes to start. Each part takes 0.5 s on the reference machine.
DOCUMENTS, PROCESSES = 10_000, 850
_FORKS = 'count=$1; while [ "$count" -gt 0 ]; do (:); /bin/true; count=$((count - 1)); done'


def calibration_s() -> float:
    """Do the fixed work several times on this machine; return the least processor seconds."""
    return min(_once() for _ in range(TRIES))


def _once() -> float:
    before_s = _used_s()
    _python(DOCUMENTS)
    subprocess.run(["/bin/sh", "-c", _FORKS, "sh", str(PROCESSES)], check=True)
    return _used_s() - before_s


def _used_s() -> float:
    """Return the processor seconds of this process and of its ended child processes."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _python(documents: int) -> None:
    text = json.dumps({f"name{number:03}": {"value": number, "words": ["a", "b"]} for number in range(100)})
    for _ in range(documents):
        rows = json.loads(text)
        found = sorted((len(name), row["value"], "".join(row["words"])) for name, row in rows.items())
        json.dumps([f"{length} {value} {word}" for length, value, word in found])
