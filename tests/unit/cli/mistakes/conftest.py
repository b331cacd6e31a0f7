"""Whoever makes mistakes sits at a desk of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.mistakes.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """The desk, with a site that nobody has touched yet."""
    return Desk(tmp_path)
