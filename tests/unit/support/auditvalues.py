"""The values that audits compare of a host with the real roles, as they are by default."""

from __future__ import annotations

from typing import Any

from hostwright.audit.readings.answers import all_values
from hostwright.plan.roles.auditvalue import AuditValue
from hostwright.plan.roles.role import Wanted, discover, in_order
from hostwright.stack.stack import Stack


def wanted(stack: Stack, *roles: str, **variables: Any) -> Wanted:
    """What is wanted of a host that has these roles, or those of its stack, with ``variables`` of some by names."""
    known = in_order({role.name: role for role in discover()}, stack.roles)
    chosen = (role for role in known if role.name in (roles or stack.roles))
    return Wanted(stack, roles=tuple((role, variables.get(role.name) or role.variables()) for role in chosen))


def values(stack: Stack, *roles: str) -> tuple[AuditValue, ...]:
    """All values of such a host, with those of its record."""
    return all_values(stack.name, wanted(stack, *roles).audit_values)
