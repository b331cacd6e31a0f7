"""One good host, provisioned once and frozen; every host of these tests starts as its clone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostwright.apply.locking import locallocks
from hostwright.rebuild import records
from lab import fleet, snapshots
from lab.config import Lab
from lab.programs import run
from lab.records import Snapshot, find_machine, read_records, read_snapshots
from tests.lab.conftest import SMALL, FrontDoor
from tests.lab.ownlab import own_lab
from tests.lab.rebuild.bench import Bench
from tests.lab.telling import tell

GOOD = "good"


@pytest.fixture(scope="package")
def bench(pytestconfig: pytest.Config) -> Iterator[Bench]:
    """A lab with BMCs and a snapshot of a good host; at the end, what became of all states in one table."""
    with own_lab("rbt") as lab:
        fleet.remove(lab, [host for host in read_records(lab) if host != GOOD])  # of a run that was kept
        for remembered in (locallocks.FOLDER, records.FILE):  # of rebuilds of hosts of these names
            run(["rm", "-rf", lab.state / "controller" / remembered])
        invoke = FrontDoor(lab)
        made = Bench(lab, _good(lab, invoke), invoke)
        common = lab.inventory.parent / "group_vars" / "all.yml"
        common.parent.mkdir(exist_ok=True)
        common.write_text("hostwright_reboot_timeout: 180\n")  # a lab host that is not back then never will be
        yield made
        tell(pytestconfig, made.table())


def _good(lab: Lab, invoke: FrontDoor) -> Snapshot:
    """Provision a host from bare to the stack, and freeze it."""
    if GOOD in read_snapshots(lab):
        return read_snapshots(lab)[GOOD]
    fleet.supply(lab, SMALL)
    fleet.up(lab, [GOOD], options=SMALL, bmc=True)
    for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", GOOD)):
        done = invoke(*words)
        assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return snapshots.freeze(find_machine(lab, GOOD), GOOD)
