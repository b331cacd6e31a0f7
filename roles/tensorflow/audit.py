"""The values of TensorFlow's environment that audits compare."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import Recipe
from hostwright.roles import DISTRIBUTION, AuditValue, RoleContext, VenvPython, VenvVersion
from hostwright.standard.roles.tensorflow import Tensorflow
from hostwright.standard.roles.tensorflow.section import TensorflowSection

#: beside TensorFlow itself: the packages whose newer versions break its import
PACKAGES = ("numpy", "protobuf", "keras", "tensorboard")


def audit_values(v: Tensorflow, ctx: RoleContext) -> Iterator[AuditValue]:
    """Its Python, its own version, and the packages that its import depends on."""
    wanted = ctx.section(TensorflowSection)
    venv = wanted.home(v.path)
    python = VenvPython(venv)
    yield AuditValue("python", python, among=DISTRIBUTION)
    yield AuditValue("tensorflow", VenvVersion(venv, "tensorflow"), wanted.version)
    for series, constraints in wanted.constraints.items():
        pins = Recipe("", series, f"tensorflow=={wanted.version}", constraints).pins
        for name in PACKAGES:
            yield AuditValue(name, VenvVersion(venv, name), pins.get(name), given=(python, series))
    for name in PACKAGES:  # also for a Python that is not in the stack, or is missing
        yield AuditValue(name, VenvVersion(venv, name), among=python)
