"""Lab hosts with containers for people: opt-in, as the images are gigabytes and a training takes its time."""

from __future__ import annotations

import os

import pytest


def pytest_configure() -> None:
    """The lab makes network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("hosts of the lab need root: say `make workspaces`, which uses sudo")
