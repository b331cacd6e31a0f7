"""One machine for all tests of this folder, which come one after the other: each boot takes a minute or two."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lab import fleet
from lab.config import HostOptions
from lab.records import find_machine
from tests.lab.conftest import FrontDoor
from tests.lab.ownlab import own_lab
from tests.vm.whole import Whole

OPTIONS = HostOptions(profile="small", kind="vm")
NAME = "vm01"


def pytest_configure() -> None:
    """The lab makes network devices."""
    if os.geteuid() != 0:
        raise pytest.UsageError("a whole machine needs root: say `make vm`, which uses sudo")


@pytest.fixture(scope="session")
def whole() -> Iterator[Whole]:
    """The machine, booted for the first time, with the stack's files mirrored here."""
    with own_lab("vm") as lab:
        fleet.supply(lab, OPTIONS)
        fleet.up(lab, [NAME], options=OPTIONS)
        door = FrontDoor(lab)
        mirrored = door("mirror", "--stack", "lab")
        assert mirrored.returncode == 0, mirrored.stderr
        yield Whole(find_machine(lab, NAME), door)
