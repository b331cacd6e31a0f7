"""The suite: its trials, their distribution over hosts, and their results."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from tests.lab.faults.bench import Bench
from tests.lab.faults.cases import CASES, Case
from tests.lab.faults.checks import written_files
from tests.lab.faults.layers import LAYERS, Reference
from tests.lab.faults.results import CONTROL, Record
from tests.lab.faults.trial import Missed, Trial

ATTEMPTS = 6  #: attempts to reach a moment; each miss makes it earlier
SOONER = 0.7
_CONTROL = next(case for case in CASES if case.kind == CONTROL)


@dataclass(frozen=True, slots=True)
class Task:
    """One trial to run."""

    number: int
    case: Case
    layer: str
    seed: str


def schedule(total: int, seed: int, only: str = "") -> list[Task]:
    """Return this many trials, distributed over kinds and layers by weight and shuffled by the seed.

    ``only`` is a part of the names of the kinds to run.
    """
    chosen = [case for case in CASES if case.layers and only.lower() in case.kind.lower()]
    weights = [(case, layer, weight) for case in chosen for layer, weight in case.layers.items()]
    whole = sum(weight for *_, weight in weights)
    drawn: list[tuple[Case, str]] = []
    owed = 0.0
    for case, layer, weight in weights:
        owed += weight * total / whole if whole else 0.0
        while owed >= 0.5 and len(drawn) < total:
            drawn.append((case, layer))
            owed -= 1.0
    random.Random(seed).shuffle(drawn)  # noqa: S311 - an order, not a key
    drawn.sort(key=lambda one: one[0].alone)
    return [Task(place, case, layer, f"{seed}:{place}") for place, (case, layer) in enumerate(drawn, start=1)]


def controls(layers: Iterable[str], seed: int) -> list[Task]:
    """Return one run without a fault per layer, longest first, from which moments are drawn."""
    longest = ("tensorflow", "base", "container", "cuda", "driver", "cudnn", "environment")
    wanted = [layer for layer in longest if layer in set(layers)]
    return [Task(9000 + place, _CONTROL, layer, f"{seed}:control-{layer}") for place, layer in enumerate(wanted)]


def perform(bench: Bench, task: Task, host: str) -> Record:
    """Run one trial on a host of the bench; return its record, also after an error of the suite itself."""
    began_s = time.monotonic()
    record = Record(task.number, task.case.kind, task.layer, task.seed)
    for attempt in range(ATTEMPTS):
        record = Record(task.number, task.case.kind, task.layer, task.seed, missed=attempt)
        try:
            _attempt(bench, task, host, record)
            break
        except Missed:
            continue
        except Exception:  # noqa: BLE001 - the record has the error, and the other trials continue
            record.broken.append(f"the suite failed: {traceback.format_exc()}")
            break
    else:
        record.broken.append(f"the moment was missed {ATTEMPTS} times")
    record.seconds = round(time.monotonic() - began_s, 1)
    return record


def _attempt(bench: Bench, task: Task, host: str, record: Record) -> None:
    machine = bench.machine(f"{host}d" if task.case.own_disk else host, own_disk=task.case.own_disk)
    trial = Trial(bench, machine, LAYERS[task.layer], record, scale=SOONER**record.missed)
    bench.prepare(machine, LAYERS[task.layer])
    try:
        _carry_out(trial, task.case)
    finally:
        trial.close()


def _carry_out(trial: Trial, case: Case) -> None:
    before = written_files(trial.root)
    case.act(trial)
    if case.kind == CONTROL:
        trial.bench.keep_reference(_reference(trial, before))
    trial.look_at_rest()
    if trial.record.further is None:
        trial.again()
    trial.look_at_end(repeats_allowed=case.may_repeat)


def _reference(trial: Trial, before: dict[str, str]) -> Reference:
    run = trial.last_run
    first = run.first_host_line()
    steps = tuple((step.role, step.what, step.name, step.seconds) for job in trial.new_jobs() for step in job.steps)
    first_s = first.at_s if first else 0.0
    after = written_files(trial.root)
    return Reference(trial.layer.name, first_s, run.seconds - first_s, steps, before, after)


def work_through(bench: Bench, tasks: list[Task], lanes: int, tell: Callable[[Record], None]) -> None:
    """Run all trials, ``lanes`` hosts at a time; trials that must run alone follow one after another."""
    together = [task for task in tasks if not task.case.alone]
    _in_lanes(bench, together, lanes, tell)
    _in_lanes(bench, [task for task in tasks if task.case.alone], 1, tell)


def _in_lanes(bench: Bench, tasks: list[Task], lanes: int, tell: Callable[[Record], None]) -> None:
    queue: SimpleQueue[Task] = SimpleQueue()
    for task in tasks:
        queue.put(task)
    lock = threading.Lock()

    def lane(number: int) -> None:
        for task in _drain(queue):
            record = perform(bench, task, f"lane{number}")
            with lock:
                tell(record)

    threads = [
        threading.Thread(target=lane, args=(number,), daemon=True) for number in range(1, min(lanes, len(tasks)) + 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _drain(queue: SimpleQueue[Task]) -> Iterator[Task]:
    while True:
        try:
            yield queue.get_nowait()
        except Empty:
            return
