"""TensorFlow in a separate venv."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hostwright.resources import EnvironmentVariables, Resource, environment_states
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.environment.beside_wheels import beside_wheels
from hostwright.standard.roles.tensorflow.section import TensorflowSection


@role(needs=["base"], uses=["cuda", "cudnn", "environment"], short="tf")
def tensorflow(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[Resource]:
    """Venv with TensorFlow, for a Python that this TensorFlow has wheels for, with each package at its pinned version.

    The Python is the host's, or the stack's if the distribution has none that fits. Without the pins, pip installs
    numpy 2 and protobuf 4, with which TensorFlow 2.9.0 cannot be imported. Installing it needs neither CUDA nor cuDNN,
    so their roles run in parallel.
    """
    section = ctx.section(TensorflowSection)
    yield from beside_wheels(section)
    yield from environment_states(section, ctx.stack, v, _known_wheels())


@cache
def _known_wheels() -> str:
    return Path(__file__).with_name("wheels.txt").read_text("utf-8")
