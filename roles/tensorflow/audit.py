"""The values of TensorFlow's environment that audits compare."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, environment_values
from hostwright.roles import AuditValue, RoleContext
from hostwright.standard.roles.cuda.wheels import libraries_of
from hostwright.standard.roles.tensorflow.section import TensorflowSection

#: beside TensorFlow itself: the packages whose newer versions break its import
PACKAGES = ("numpy", "protobuf", "keras", "tensorboard")


def audit_values(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[AuditValue]:
    """Its Python, its own version, and the packages that its import depends on."""
    wanted = ctx.section(TensorflowSection)
    return environment_values(wanted, v, (*PACKAGES, *libraries_of(wanted)))
