"""Values that an audit records about PyTorch's venv."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, environment_values
from hostwright.roles import AuditValue, RoleContext
from hostwright.standard.roles.cuda.wheels import libraries_of
from hostwright.standard.roles.pytorch.section import PytorchSection


def audit_values(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield the versions of Python, PyTorch and the packages that PyTorch needs."""
    wanted = ctx.section(PytorchSection)
    return environment_values(wanted, v, (*("numpy", "triton"), *libraries_of(wanted)))
