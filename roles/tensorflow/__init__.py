"""TensorFlow, in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import Wanted, role
from hostwright.resources.python.interpreters import VenvPackage
from hostwright.resources.python.python import Recipe, Venv
from hostwright.standard.roles.tensorflow.section import TensorflowSection


@dataclass(frozen=True, slots=True)
class Tensorflow:
    """Variables of the role ``tensorflow``; version, Pythons, pins and wheelhouses are the stack's."""

    #: the link through which the environment is used: PATH/bin/python; empty: /opt/tensorflow-2.9, by its series
    path: str = ""


@role(needs=["base"])
def tensorflow(v: Tensorflow, host: Wanted) -> Iterator[Resource]:
    """A venv of a Python that this TensorFlow has wheels for, with every package at its pin.

    Without the pins, today's pip installs numpy 2 and protobuf 4, and TensorFlow 2.9.0 cannot be imported. CUDA and
    cuDNN are found through the loader's path (role ``environment``), so this role needs neither and runs in parallel.
    """
    wanted = host.section(TensorflowSection)
    path = wanted.home(v.path)
    yield VenvPackage(wanted.pythons)
    yield Venv(path, tuple(_recipe(path, host, python) for python in wanted.pythons))


def _recipe(path: str, host: Wanted, python: str) -> Recipe:
    wanted = host.section(TensorflowSection)
    wheels = wanted.wheelhouses.get(python)
    return Recipe(
        name=path.rpartition("/")[2],
        python=python,
        requirement=f"tensorflow=={wanted.version}",
        constraints=wanted.constraints.get(python, ""),  # the rules refuse a stack without any
        wheelhouse=host.stack.artifact(wheels) if wheels else None,
    )
