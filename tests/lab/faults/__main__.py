"""Command line of the fault suite: ``python -m tests.lab.faults --trials 210 --lanes 3 --seed 1``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from hostwright.apply.journal.header import commit_of
from hostwright.common.errors import LabError
from hostwright.common.places import state_root
from lab import fleet
from lab.records import find_lab
from tests.lab.faults.bench import open_bench
from tests.lab.faults.results import CONTROL, Record, read, table, write_document
from tests.lab.faults.suite import controls, schedule, work_through

LAB = "faults"


def main() -> int:
    """Run the suite, or only write the table of an earlier run. Return 0 if all trials were good, else 1."""
    options = _options()
    if options.table:
        write_document(read(options.out))
        print(table(read(options.out)))
        return 0
    if os.geteuid() != 0:
        print("the lab makes network namespaces and boots hosts: say sudo, or `make faults`", file=sys.stderr)
        return 2
    if not options.keep and find_lab(options.lab) is not None:
        fleet.down(find_lab(options.lab) or sys.exit(2))
    tasks = schedule(options.trials, options.seed, options.only)
    if not tasks:
        print(f"no kind of fault has {options.only!r} in its name", file=sys.stderr)
        return 2
    began_s = time.monotonic()
    layers = tuple(dict.fromkeys(task.layer for task in tasks))
    bench = open_bench(options.lab, layers=layers)
    missing = [layer for layer in layers if layer not in bench.references]
    log = _Log(options.out, len(tasks))
    log.begin(options)
    work_through(bench, controls(missing, options.seed), options.lanes, log.tell)
    work_through(bench, tasks, options.lanes, log.tell)
    log.end(time.monotonic() - began_s)
    if options.document:
        write_document(read(options.out))
    if not options.keep:
        fleet.down(bench.lab)
    return 1 if log.bad else 0


class _Log:
    """Appends each record to the file, and prints a line about it."""

    def __init__(self, path: Path, trials: int):
        self._path, self._trials, self._done = path, trials, 0
        self._head: dict[str, object] = {}
        self.bad: list[Record] = []

    def begin(self, options: argparse.Namespace) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        began = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        self._head = {"suite": 1, "seed": options.seed, "lanes": options.lanes, "began": began}
        self._write({**self._head, "commit": commit_of(Path(__file__).parent), "seconds": 0})

    def tell(self, record: Record) -> None:
        self._write(record.to_json())
        self._done += record.kind != CONTROL
        when = f" at {record.share:.0%}, {record.during}" if record.share is not None else ""
        what = "ok" if record.ok else "NOT AS PROMISED"
        again = f"{record.further} further" if record.further is not None else "never ended well"
        repeated = f", {len(record.repeated)} repeated" if record.repeated else ""
        print(
            f"[{self._done:3}/{self._trials}] {what}: {record.kind} · {record.layer}{when} · {again}{repeated}, "
            f"{record.seconds:.0f} s {_short(record.notes)}",
            flush=True,
        )
        if not record.ok:
            self.bad.append(record)
            for complaint in record.complaints:
                print(f"          {complaint}", flush=True)

    def end(self, seconds: float) -> None:
        records = read(self._path)
        records[0]["seconds"] = round(seconds)
        before = self._path.read_text().splitlines()[: -len(records)]
        self._path.write_text("\n".join([*before, *map(json.dumps, records)]) + "\n")
        print(f"{self._done} faults in {seconds / 60:.0f} min, {len(self.bad)} not as promised; {self._path}")

    def _write(self, record: dict[str, object]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(record) + "\n")


def _short(notes: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in notes.items())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.faults", description=__doc__)
    parser.add_argument("--trials", type=int, default=210, help="how many faults (default: 210)")
    parser.add_argument("--lanes", type=int, default=3, help="hosts worked on at a time (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="draws kinds, layers and moments (default: 1)")
    parser.add_argument("--only", default="", metavar="PART", help="only kinds with this in their name")
    parser.add_argument("--out", type=Path, default=state_root() / "faults.jsonl", help="where the records go")
    parser.add_argument("--table", action="store_true", help="only write the table of the last suite's records")
    parser.add_argument("--document", action="store_true", help="write the table when the suite has ended")
    parser.add_argument("--lab", default=LAB, help="name of the lab")
    parser.add_argument(
        "--keep", action="store_true", help="keep the lab and its snapshots, and use those that are there"
    )
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(str(error))
