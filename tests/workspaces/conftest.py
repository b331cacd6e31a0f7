"""One lab host with containers for people: opt-in, as the images are gigabytes and a training takes its time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab import fleet
from lab.records import find_machine
from tests.lab.conftest import SMALL, FrontDoor
from tests.lab.ownlab import own_lab
from tests.lab.telling import Telling
from tests.workspaces import busy
from tests.workspaces.site import HOST, Site


def pytest_configure(config: pytest.Config) -> None:
    """The lab makes network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("hosts of the lab need root: say `make workspaces`, which uses sudo")
    config.pluginmanager.register(Telling())


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """A host that is provisioned with everything declared, the image in its Docker as an operator brings it."""
    with own_lab("people") as lab:
        fleet.supply(lab, SMALL)
        fleet.up(lab, [HOST], options=SMALL)
        opened = Site(lab, find_machine(lab, HOST), FrontDoor(lab))
        opened.declare()
        opened.succeeds("mirror", "--stack", "lab")
        opened.succeeds("provision", "--hosts", HOST, "--roles", "base,driver,container")
        opened.accounts()
        opened.images()
        opened.succeeds("provision", "--hosts", HOST)
        yield opened


@pytest.fixture(scope="session")
def host() -> Iterator[busy.Busy]:
    """A host on which two people work, with a BMC, and a snapshot of it to which tests go back."""
    with own_lab("upheav") as lab:
        yield busy.settled(lab)
