"""``pip check`` at a sixth of its price."""

from __future__ import annotations

from pathlib import Path

#: A Python program that prints what ``pip check`` prints, and ends with its status.
PIP_CHECK = (Path(__file__).parent / "programs/pip_check.py").read_text("utf-8")
