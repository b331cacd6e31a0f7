"""One machine for all tests of a file, which come one after the other: each boot takes a minute or two."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from lab import fleet
from lab.records import find_machine
from tests.lab.conftest import FrontDoor
from tests.lab.ownlab import own_lab
from tests.vm.whole import Whole


def pytest_configure() -> None:
    """The lab makes network devices."""
    if os.geteuid() != 0:
        raise pytest.UsageError("a whole machine needs root: say `make vm`, which uses sudo")


@pytest.fixture(scope="module")
def whole(request: pytest.FixtureRequest) -> Iterator[Whole]:
    """The machine that the file describes (``HOST``, ``OPTIONS``), booted for the first time."""
    name, options = request.module.HOST, request.module.OPTIONS
    with own_lab(name) as lab:
        fleet.supply(lab, replace(options, real=""))  # a driver of its own comes with the disk
        fleet.up(lab, [name], options=options)
        yield Whole(find_machine(lab, name), FrontDoor(lab))


@pytest.fixture(scope="module")
def failed_before(request: pytest.FixtureRequest) -> int:
    """How many tests of other files had failed."""
    return request.session.testsfailed


@pytest.fixture(autouse=True)
def in_order(request: pytest.FixtureRequest, failed_before: int) -> None:
    """After a failure the machine is in no known state: the rest would only say so at length."""
    if request.session.testsfailed > failed_before:
        pytest.skip("an earlier test failed")
