"""Audit values of a host with the real roles and their default variables."""

from __future__ import annotations

from typing import Any

from hostwright.audit.readings.answers import all_values
from hostwright.plan.roles.auditvalue import AuditValue
from hostwright.plan.roles.role import RoleContext, discover, in_order
from hostwright.stack.stack import Stack


def role_context(stack: Stack, *roles: str, **variables: Any) -> RoleContext:
    """The context of a host with these roles (default: the stack's), with ``variables`` of roles by name."""
    known = in_order({role.name: role for role in discover()}, stack.roles)
    chosen = (role for role in known if role.name in (roles or stack.roles))
    return RoleContext(stack, roles=tuple((role, variables.get(role.name) or role.variables()) for role in chosen))


def values(stack: Stack, *roles: str) -> tuple[AuditValue, ...]:
    """All audit values of such a host, including those of its record."""
    return all_values(stack.name, role_context(stack, *roles).audit_values)
