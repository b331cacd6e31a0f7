"""TensorFlow, in an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from hostwright.resources import ArchiveUnpacked, Part, Recipe, Resource, Venv, VenvPackage, interpreter_home
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.tensorflow.section import TensorflowSection


@dataclass(frozen=True, slots=True)
class Tensorflow:
    """Variables of the role ``tensorflow``; version, Pythons, pins and wheelhouses are the stack's."""

    #: the link through which the environment is used: PATH/bin/python; empty: /opt/tensorflow-2.9, by its series
    path: str = ""
    #: where pip takes wheels from: index (the one that the host's pip is set to) or mirror (this machine's files alone)
    wheels_from: Literal["index", "mirror"] = "index"


@role(needs=["base"], uses=["cuda", "cudnn"], short="tf")
def tensorflow(v: Tensorflow, ctx: RoleContext) -> Iterator[Resource]:
    """A venv of a Python that this TensorFlow has wheels for, with every package at its pin.

    The Python is the host's own, or one that the stack brings for distributions that have none of these.
    Without the pins, today's pip installs numpy 2 and protobuf 4, and TensorFlow 2.9.0 cannot be imported. CUDA and
    cuDNN are found through the loader's path (role ``environment``), so this role needs neither and runs in parallel.
    """
    wanted = ctx.section(TensorflowSection)
    path = wanted.home(v.path)
    brought = wanted.interpreter
    if brought:
        archive = ctx.stack.artifact(brought.artifact)
        yield ArchiveUnpacked(
            f"python{brought.python}",
            archive.file,
            archive,
            (Part(brought.inside, interpreter_home(brought.python), deep=True),),
            scratch=f"{interpreter_home(brought.python)}.hostwright-new",
        )
    else:
        yield VenvPackage(wanted.pythons)
    yield Venv(path, tuple(_recipe(path, ctx, python, v.wheels_from == "mirror") for python in wanted.usable))


@cache
def _known_wheels() -> str:
    return Path(__file__).with_name("wheels.txt").read_text("utf-8")


def _recipe(path: str, ctx: RoleContext, python: str, mirrored: bool) -> Recipe:
    wanted = ctx.section(TensorflowSection)
    wheels = wanted.wheelhouses.get(python)
    return Recipe(
        name=path.rpartition("/")[2],
        python=python,
        requirement=f"tensorflow=={wanted.version}",
        constraints=wanted.constraints.get(python, ""),  # the rules refuse a stack without any
        wheelhouse=ctx.stack.artifact(wheels) if wheels else None,
        wheels=f"{_known_wheels()}\n{wanted.wheels}",
        mirrored=mirrored,
        interpreter=f"{interpreter_home(python)}/bin/python{python}" if wanted.interpreter else "",
    )
