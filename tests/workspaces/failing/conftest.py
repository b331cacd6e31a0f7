"""One host for all of these tests; each begins without a workspace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.ownlab import own_lab
from tests.workspaces.failing.bench import Bench, opened


@pytest.fixture(scope="package")
def host() -> Iterator[Bench]:
    """The host."""
    with own_lab("wsfail") as lab:
        yield opened(lab)


@pytest.fixture
def bench(host: Bench) -> Bench:
    """The host without a workspace."""
    host.wiped()
    return host
