"""Finder of all venvs on a host that contain TensorFlow, whoever made them."""

from __future__ import annotations

from hostwright.resources import environment_finder

FOUND = environment_finder("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tensorflow-base")
