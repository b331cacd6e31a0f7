"""A program equivalent to ``pip check`` in a sixth of its time."""

from __future__ import annotations

from pathlib import Path

#: Source of a Python program with the output and exit status of ``pip check``.
PIP_CHECK = (Path(__file__).parent / "programs/pip_check.py").read_text("utf-8")
