"""The source of what reads hosts: numbers and patterns are bounded, or it is said why they need not be."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = [
    *(f"hostwright/{room}" for room in ("transport", "apply", "verify", "rebuild", "audit", "plan", "resources")),
    "roles",
]
