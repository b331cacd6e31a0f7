"""Measurement of the audit history after a year of daily audits: size of its file, and durations of its operations.

    .venv/bin/python -m benchmarks.history

``make bench CASES=history`` also runs this program, and stores the figures.

The audits are generated and written with the real ``History.add``. Each host has 8 cards and about 90 readings. In the
generated year each host reboots once a month with a new kernel, in waves of a tenth of the fleet per day. The driver is
upgraded twice. Per day, one host in 200 drifts and is repaired within a week, one in 500 has a failure, and one in 100
cannot be read. Per month, one card in 500 is replaced.

Times are the median of several calls after the last audit; each call opens the file again. The goals: less than 100 ms
for one host's history and for a week's diff, 2 s for an add, and 200 MB for the file.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from statistics import median

from hostwright.audit.fleetaudit import Deviation, FleetAudit, HostAudit, Layer, LayerStatus, Reading, worst
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.history import History
from hostwright.common.errors import Finding

INVENTORY = "inventory"
START = datetime(2026, 1, 1, 6, tzinfo=UTC)
LAYERS = ("base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "gpu")
DRIVERS = ("470.182.03", "470.223.02", "470.256.02")
CARDS = 8
ALIKE = 80  #: number of readings per host with rarely changing values
ROUNDS = 5

LINK = Deviation("cuda", "link /usr/local/cuda", "/usr/local/cuda-11.4", "/usr/local/cuda-11.2", "drift")
XID = Finding(
    "xid-fatal", "gpu", True, ("Xid 79 on 0000:3b:00",), "a GPU fell off the bus", "Power-cycle it", False, ""
)


@dataclass
class Machine:
    """Generated host, with the state on the current day."""

    name: str
    cards: list[Gpu]
    kernel: int = 0
    driver: int = 0
    provisioned: str = START.isoformat()
    drifts_until: int = 0
    fails_until: int = 0
    values: list[Reading] = field(default_factory=list)

    def look(self, day: int, *, read: bool) -> HostAudit:
        """Generate the audit on ``day``; without ``read``, the audit of an unreachable host."""
        at = (START + timedelta(days=day)).isoformat()
        if not read:
            return HostAudit(self.name, "tensorflow-2.9", at, "unread", "timed out after 15 s", _layers({}, "unread"))
        deviations = (LINK,) if self.drifts_until > day else ()
        findings = (XID,) if self.fails_until > day else ()
        layers = _layers({"cuda": "drift"} if deviations else {"gpu": "failing"} if findings else {})
        driver = DRIVERS[self.driver]
        own = (
            Reading("base", "kernel", f"5.10.0-{self.kernel + 20}-amd64", among="Debian 11"),
            *(Reading("driver", name, driver, driver) for name in ("loaded", "module", "dkms", "libcuda")),
            Reading("base", "product serial", f"S{self.name}", among="DGX"),
            Reading("release", "at", self.provisioned),
            Reading("gpu", "count", str(len(self.cards)), among="DGX"),
        )
        status = worst(layer.status for layer in layers)
        return HostAudit(
            self.name, "tensorflow-2.9", at, status, layers=layers, readings=(*self.values, *own),
            deviations=deviations, findings=findings, gpus=tuple(self.cards),
        )  # fmt: skip


def _layers(otherwise: dict[str, LayerStatus], usual: LayerStatus = "desired") -> tuple[Layer, ...]:
    return tuple(Layer(name, otherwise.get(name, usual)) for name in LAYERS)


def machine(number: int) -> Machine:
    """Generate the host ``number`` in the state on the first day."""
    cards = [
        Gpu(
            card,
            f"0000:{card + 1:02x}:00.0",
            f"GPU-{number:08x}-{card}",
            "A100",
            f"{number:06}{card}",
            "92.00.45.00.06",
        )
        for card in range(CARDS)
    ]
    values = [
        Reading(LAYERS[one % len(LAYERS)], f"value {one}", f"1.{one}.0", f"1.{one}.0" if one % 2 else None, "DGX")
        for one in range(ALIKE)
    ]
    return Machine(f"gpu{number:04}", cards, values=values)


def year(hosts: int, days: int, random: Random) -> Iterator[FleetAudit]:
    """Generate the audits of ``hosts`` hosts, one audit per day."""
    fleet = [machine(number) for number in range(hosts)]
    for day in range(days):
        at = START + timedelta(days=day)
        for number, one in enumerate(fleet):
            _pass_a_day(one, number, day, random)
        seen = tuple(one.look(day, read=random.random() > 0.01) for one in fleet)
        yield FleetAudit(at.isoformat(), INVENTORY, seen, took_s=60.0)


def _pass_a_day(one: Machine, number: int, day: int, random: Random) -> None:
    turn = number % 10 == day % 30
    if turn:
        one.kernel = day // 30
    if turn and one.driver < day // 120 < len(DRIVERS):
        one.driver = day // 120
        one.provisioned = (START + timedelta(days=day, seconds=number)).isoformat()
    if random.random() < 1 / 200:
        one.drifts_until = day + random.randint(1, 7)
    if random.random() < 1 / 500:
        one.fails_until = day + random.randint(1, 3)
    if random.random() < CARDS / 500 / 30:
        card = random.randrange(CARDS)
        one.cards[card] = replace(one.cards[card], serial=f"new-{number}-{day}", uuid=f"GPU-new-{number}-{day}")


def timed(work: Callable[[], object]) -> float:
    """Call ``work`` several times; return the median duration in seconds."""
    found = []
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        work()
        found.append(time.perf_counter() - began_s)
    return median(found)


def measure(folder: Path, hosts: int, days: int, *, as_json: bool) -> None:
    """Write generated audits to a history in ``folder``, measure each operation, and print the results.

    With ``as_json``, print only the results for ``docs/performance.md``.
    """
    history, adds = History(folder), []
    began_s = time.perf_counter()
    for audit in year(hosts, days, Random(1)):  # noqa: S311 - a fixed seed, for the same year in every run
        add_s = time.perf_counter()
        history.add(audit)
        adds.append(time.perf_counter() - add_s)
    readings = max(len(host.readings) for host in audit.hosts)
    written_s = time.perf_counter() - began_s
    week = START + timedelta(days=days - 8)
    uses: dict[str, Callable[[], object]] = {
        "history of one host": lambda: history.host_history("gpu0007", None, INVENTORY),
        "diff since 7 days": lambda: history.diff(INVENTORY, week),
        "diff since the beginning": lambda: history.diff(INVENTORY, START),
        "trend of 90 days": lambda: history.trend(INVENTORY, 90),
        "trend of all days": lambda: history.trend(INVENTORY, days),
        "latest": lambda: history.latest(INVENTORY),
        "ages": lambda: history.ages(INVENTORY),
    }
    took_s = {name: timed(use) for name, use in uses.items()}
    if as_json:
        figures = {
            "size_mb": history.path.stat().st_size / 1e6,
            "add_s": median(adds[-30:]),
            "one_host_s": took_s["history of one host"],
            "week_s": took_s["diff since 7 days"],
        }
        print(json.dumps(figures))
        return
    print(f"{hosts} hosts, {days} daily audits, {readings} readings and {CARDS} cards a host")
    print(f"generated and written in  {written_s:8.1f} s")
    print(f"size of the file          {history.path.stat().st_size / 1e6:8.1f} MB")
    print(f"the first add             {adds[0] * 1e3:8.1f} ms")
    print(f"an add at the end         {median(adds[-30:]) * 1e3:8.1f} ms")
    print(f"the slowest later add     {max(adds[1:]) * 1e3:8.1f} ms")
    for name, seconds in took_s.items():
        print(f"{name:26}{seconds * 1e3:8.1f} ms")
    print(f"events of gpu0007 {len(history.host_history('gpu0007', None, INVENTORY).events)}")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--json", action="store_true", help="the figures that the page of benchmarks shows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hwbench-") as name:
        measure(Path(name), options.hosts, options.days, as_json=options.json)


if __name__ == "__main__":
    main()
