"""Good hosts, provisioned once and frozen; every host of these tests is a clone of one."""

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
    """A lab with BMCs and good hosts; prints a table of all states at the end."""
    with own_lab("rbt") as lab:
        # left by a run with HOSTWRIGHT_KEEP_LAB
        fleet.remove(lab, [host for host in read_records(lab) if not host.startswith(GOOD)])
        for remembered in (locallocks.FOLDER, records.FILE):  # records of earlier rebuilds of hosts with these names
            run(["rm", "-rf", lab.state / "controller" / remembered])
        made = Bench(lab, FrontDoor(lab))
        common = lab.inventory.parent / "group_vars" / "all.yml"
        common.parent.mkdir(parents=True, exist_ok=True)
        common.write_text("hostwright_reboot_timeout: 180\n")  # a lab host that needs longer never comes back
        yield made
        tell(pytestconfig, made.table())
