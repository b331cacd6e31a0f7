"""Finder of all venvs with TensorFlow on a host, including those that Hostwright did not create."""

from __future__ import annotations

from hostwright.resources import environment_finder

FOUND = environment_finder("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tensorflow-base")
