"""Plant all faults, audit and fix them, and print the audit's score.

sudo .venv/bin/python -m tests.lab.audit [--hosts 8] [--only PART-OF-A-NAME]

Uses a separate lab, ``audits``. Each plant gets its own host from a snapshot of a good one. One more host stays clean
in every round.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from lab import fleet, snapshots
from lab.config import HostOptions
from lab.records import find_machine, open_lab
from tests.lab.audit.bench import Bench, Score, score
from tests.lab.audit.planting import Plant
from tests.lab.audit.plants import PLANTS
from tests.lab.conftest import FrontDoor
from tests.unit.support.known import SIGNED

LAB = "audits"
OPTIONS = HostOptions(profile="small")


def main() -> int:
    """Run all rounds and print the results; return 0 if all faults and no others were found and each fix worked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=8)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    chosen = [one for one in PLANTS if options.only in f"{one.layer}: {one.name}"]
    lab = open_lab(LAB)
    fleet.down(lab)
    try:
        bench = _bench(tuple(f"aud{number:02}" for number in range(1, options.hosts + 1)))
        return _play(bench, chosen)
    finally:
        fleet.down(lab)


def _bench(hosts: tuple[str, ...]) -> Bench:
    """Provision one host, freeze it, and clone it."""
    lab = open_lab(LAB)
    fleet.supply(lab, OPTIONS)
    fleet.up(lab, ["good"], options=OPTIONS)
    invoke = FrontDoor(lab)
    for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", "good")):
        done = invoke(*words)
        if done.returncode:
            raise SystemExit(f"{words}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    bench = Bench(lab, snapshots.freeze(find_machine(lab, "good"), "good"), invoke, hosts)
    bench.bring()
    return bench


def _play(bench: Bench, plants: Sequence[Plant]) -> int:
    began, each = time.monotonic(), len(bench.hosts) - 1
    seen, cured = Score(), Score()
    for first in range(0, len(plants), each):
        batch = plants[first : first + each]
        planted = {host: batch[number : number + 1] for number, host in enumerate(bench.hosts)}
        rounds = {host: tuple(some) for host, some in planted.items()}
        bench.renew(bench.hosts)
        bench.plant(rounds)
        _add(seen, score(rounds, bench.audit(status=3)), rounds)
        bench.cure_by_hand(rounds)
        done = bench.invoke("provision", "--hosts", bench.pattern)
        if done.returncode:
            print(done.stdout[-3000:], done.stderr[-3000:])
        after = bench.invoke.json("audit", "--hosts", bench.pattern, status=0 if not done.returncode else 3)
        _add(cured, score(dict.fromkeys(bench.hosts, ()), {host["host"]: host for host in after["hosts"]}), rounds)
    rules = {rule for one in plants for rule in one.rules}
    print(f"{len(plants)} kinds planted, {len(rules)} of {len(SIGNED)} rules, {time.monotonic() - began:.0f} s")
    print(f"the audit: {seen}")
    print(f"after the cures: {len(cured.invented)} of what was found is still there")
    return int(bool(seen.missed or seen.invented or cured.missed or cured.invented))


def _add(total: Score, one: Score, planted: dict[str, tuple[Plant, ...]]) -> None:
    """Add a round's score, and print its errors by the names of plants."""
    names = {host: ", ".join(each.name for each in some) or "clean" for host, some in planted.items()}
    total.found += one.found
    for what, lines in (("missed", one.missed), ("invented", one.invented)):
        for line in lines:
            host, _, rest = line.partition(": ")
            print(f"{what} on the host with [{names[host]}]: {rest}", flush=True)
            getattr(total, what).append(line)


if __name__ == "__main__":
    sys.exit(main())
