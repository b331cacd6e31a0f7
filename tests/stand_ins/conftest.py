"""Each file has a lab of its own."""

from __future__ import annotations

import os

import pytest


def pytest_configure() -> None:
    """The lab makes network namespaces and boots hosts."""
    if os.geteuid() != 0:
        raise pytest.UsageError("the lab's own tests need root: say `make stand-ins`, which uses sudo")
