"""Good hosts, provisioned once and frozen; every host of these tests starts as a clone of one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hostwright.apply.locking import locallocks
from hostwright.rebuild import records
from lab import fleet
from lab.programs import run
from lab.records import read_records
from tests.lab.conftest import FrontDoor
from tests.lab.ownlab import own_lab
from tests.lab.rebuild.bench import GOOD, Bench
from tests.lab.telling import tell


@pytest.fixture(scope="package")
def bench(pytestconfig: pytest.Config) -> Iterator[Bench]:
    """A lab with BMCs and good hosts; at the end, what became of all states in one table."""
    with own_lab("rbt") as lab:
        fleet.remove(lab, [host for host in read_records(lab) if not host.startswith(GOOD)])  # of a run that was kept
        for remembered in (locallocks.FOLDER, records.FILE):  # of rebuilds of hosts of these names
            run(["rm", "-rf", lab.state / "controller" / remembered])
        made = Bench(lab, FrontDoor(lab))
        common = lab.inventory.parent / "group_vars" / "all.yml"
        common.parent.mkdir(parents=True, exist_ok=True)
        common.write_text("hostwright_reboot_timeout: 180\n")  # a lab host that is not back then never will be
        yield made
        tell(pytestconfig, made.table())
