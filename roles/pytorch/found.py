"""Finder of all venvs on a host that contain PyTorch, whoever made them."""

from __future__ import annotations

from hostwright.resources import environment_finder

FOUND = environment_finder("torch", "pytorch")
