"""Outputs of failed programs from public threads, with the right diagnosis.

They are in ``tests/fixtures/failed``. They were collected, with their diagnoses, before any rule was tested on them.
Every second one has ``half`` set to ``kept`` and was not used while the code was written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "fixtures" / "failed"


def outside(kind: str) -> list[Any]:
    """The cases of a file as test parameters."""
    rows = map(json.loads, (FOLDER / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines())
    return [pytest.param(row, id=row["source"]) for row in rows]
