"""The values of PyTorch's environment that audits compare."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, environment_values
from hostwright.roles import AuditValue, RoleContext
from hostwright.standard.roles.cuda.wheels import libraries_of
from hostwright.standard.roles.pytorch.section import PytorchSection


def audit_values(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[AuditValue]:
    """Its Python, its own version, and the packages that come with it."""
    wanted = ctx.section(PytorchSection)
    return environment_values(wanted, v, (*("numpy", "triton"), *libraries_of(wanted)))
