"""The hosts of a module, bare at the start of each test, and a separate state directory per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cluster.hosts import Hosts, slow_hosts


@pytest.fixture(scope="module")
def slow(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """The hosts in the module's ``NAMES``."""
    with slow_hosts(tmp_path_factory.mktemp("cluster") / "site", request.module.NAMES) as hosts:
        yield hosts


@pytest.fixture
def hosts(slow: Hosts) -> Hosts:
    slow.bare()
    slow.stack()
    slow.inventory()
    return slow


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"
