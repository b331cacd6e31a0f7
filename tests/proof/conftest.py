"""One lab for all of them: hosts with TensorFlow, provisioned once and cloned."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.lab.ownlab import own_lab
from tests.lab.telling import Telling
from tests.proof import bench
from tests.proof.bench import Bench


def pytest_configure(config: pytest.Config) -> None:
    """The lab makes network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("hosts of the lab need root: say `make proof`, which uses sudo")
    config.pluginmanager.register(Telling())


@pytest.fixture(scope="session")
def hosts() -> Iterator[Bench]:
    """The lab, without a word of the inventory on how many cards a host has."""
    with own_lab("proof") as lab:
        yield bench.opened(lab)
