"""Labs of their own, one for each file, whose hosts have NVIDIA's own files where others have stand-ins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from lab import fleet
from lab.config import HostOptions, Machine
from lab.records import find_machine
from tests.lab import recording
from tests.lab.conftest import FrontDoor
from tests.lab.ownlab import own_lab

Guest = Callable[[str, str, HostOptions], tuple[Machine, FrontDoor]]


def pytest_configure(config: pytest.Config) -> None:
    """The lab makes network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("hosts of the lab need root: say `make real`, which uses sudo")
    if not config.pluginmanager.is_registered(recording):
        config.pluginmanager.register(recording)


@pytest.fixture(scope="module")
def guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    """Bring up a host, with its stack's files mirrored here: ``guest("real01", "lab-real-cudnn", options)``."""
    with own_lab(f"real{request.node.path.stem[-4:]}") as lab:

        def make(name: str, stack: str, options: HostOptions) -> tuple[Machine, FrontDoor]:
            fleet.supply(lab, options)
            fleet.up(lab, [name], options=options)
            door = FrontDoor(lab)
            mirrored = door("mirror", "--stack", stack)
            assert mirrored.returncode == 0, mirrored.stderr
            return find_machine(lab, name), door

        yield make


@pytest.fixture(autouse=True)
def in_order(request: pytest.FixtureRequest) -> None:
    """After a failure the host is in no known state: the rest would only say so at length."""
    if request.session.testsfailed:
        pytest.skip("an earlier test failed")
