"""TensorFlow, in an environment of its own."""

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
    """A venv of a Python that this TensorFlow has wheels for, with every package at its pin.

    The Python is the host's own, or one that the stack brings for distributions that have none of these.
    Without the pins, today's pip installs numpy 2 and protobuf 4, and TensorFlow 2.9.0 cannot be imported. CUDA and
    cuDNN are found through the loader's path (role ``environment``) or are pinned wheels themselves, so this role needs
    neither and runs in parallel.
    """
    section = ctx.section(TensorflowSection)
    yield from beside_wheels(section)
    yield from environment_states(section, ctx.stack, v, _known_wheels())


@cache
def _known_wheels() -> str:
    return Path(__file__).with_name("wheels.txt").read_text("utf-8")
