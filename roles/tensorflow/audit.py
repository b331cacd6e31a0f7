"""Values that an audit records about TensorFlow's venv."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, environment_values
from hostwright.roles import AuditValue, RoleContext
from hostwright.standard.roles.cuda.wheels import libraries_of
from hostwright.standard.roles.tensorflow.section import TensorflowSection

#: packages whose newer versions break the import of TensorFlow
PACKAGES = ("numpy", "protobuf", "keras", "tensorboard")


def audit_values(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield the versions of Python, TensorFlow and the packages that TensorFlow imports."""
    wanted = ctx.section(TensorflowSection)
    return environment_values(wanted, v, (*PACKAGES, *libraries_of(wanted)))
