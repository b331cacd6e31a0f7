"""What programs printed when they failed, as public threads show it, with what is right to say of it.

``tests/fixtures/failed`` holds them. They were collected, and what is right was written down, before any rule was tried
on them. ``half`` is ``kept`` for every second one, which was set aside while the code was written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "fixtures" / "failed"


def outside(kind: str) -> list[Any]:
    """The cases of a file, as parameters of a test."""
    rows = map(json.loads, (FOLDER / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines())
    return [pytest.param(row, id=row["source"]) for row in rows]
