"""The quick part of the fault suite: each cheap kind once, on the driver's layer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from tests.lab.faults.bench import open_bench
from tests.lab.faults.cases import CASES
from tests.lab.faults.results import CONTROL, Record
from tests.lab.faults.suite import Task, controls, work_through
from tests.lab.ownlab import own_lab

pytestmark = pytest.mark.long

LAB, SEED, LAYER = "fquick", 1, "driver"
KINDS = (
    "SSH connection cut",
    "controller killed, then run again",
    "disk full, then freed",
    "artifact damaged on the SSH connection",
    "sshd restarted",
    "host down in the driver's .run",
    "artifact damaged in the host's cache",
    "two provisions of one host at once",
    "host key changed",
    "journal cut off at a random byte",
)


def tasks(kinds: Iterable[str]) -> list[Task]:
    """Return one trial of each kind."""
    cases = {case.kind: case for case in CASES}
    return [
        Task(number, replace(cases[kind], layers={LAYER: 1}), LAYER, f"{SEED}:{kind}")
        for number, kind in enumerate(KINDS, start=1)
        if kind in kinds
    ]


@pytest.fixture(scope="module")
def records(request: pytest.FixtureRequest) -> Iterator[dict[str, Record]]:
    """The record of each trial whose test runs, by kind; two hosts at a time."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function) and item.path == request.path)
    kinds = [str(item.callspec.params["kind"]) for item in items]
    with own_lab(LAB):
        bench = open_bench(LAB, layers=(LAYER,))
        seen: list[Record] = []
        work_through(bench, controls([LAYER], SEED), 1, seen.append)
        work_through(bench, tasks(kinds), 2, seen.append)
        yield {record.kind: record for record in seen}


@pytest.mark.parametrize("kind", [CONTROL, *KINDS])
def test_a_host_ends_verified_whatever_happens_to_it(records: dict[str, Record], kind: str) -> None:
    record = records[kind]
    runs = "\n".join(f"-- {' '.join(run.words)}: {run.status}\n{run.output[-3000:]}" for run in record.runs)
    assert record.ok, f"{record.complaints} at {record.share}, {record.during}, {record.notes}\n{runs}"
    assert record.further is not None and record.further <= 3, runs
