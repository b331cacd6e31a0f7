"""The one host that most tests of a module's fleet are about."""

from __future__ import annotations

import pytest

from tests.unit.apply.delivery.hosts import LoopFleet, LoopHost


@pytest.fixture
def host(fleet: LoopFleet) -> LoopHost:
    """The first host of the fleet."""
    return fleet.hosts[0]
