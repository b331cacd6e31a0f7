"""Venvs with TensorFlow found on a host, whether or not Hostwright created them."""

from __future__ import annotations

from hostwright.resources import environment_finder

FOUND = environment_finder("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tensorflow-base")
