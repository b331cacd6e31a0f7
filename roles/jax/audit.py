"""Values that an audit records about JAX's venv."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, environment_values
from hostwright.roles import AuditValue, RoleContext
from hostwright.standard.roles.cuda.wheels import libraries_of
from hostwright.standard.roles.jax.section import JaxSection


def audit_values(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield the versions of Python, JAX and the packages that JAX needs."""
    wanted = ctx.section(JaxSection)
    return environment_values(wanted, v, (*("numpy", "jaxlib"), *libraries_of(wanted)))
