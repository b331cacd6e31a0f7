"""The desired states of a role, for failure rules that use the probes of these states."""

from __future__ import annotations

from typing import TypeVar

from hostwright.audit.judging.context import AuditContext, Unread

Kind = TypeVar("Kind")


def wanted(ctx: AuditContext, role: str, kind: type[Kind]) -> Kind:
    """Return the first desired state of ``role`` that has the type ``kind``.

    Raises ``Unread`` if the audit excludes the role, or the role has no such state.
    """
    resources = (
        resource
        for desired_role in ctx.desired.roles
        if desired_role.name == role
        for resource in desired_role.resources
    )
    match = next((resource for resource in resources if isinstance(resource, kind)), None)
    if match is None:
        raise Unread(f"the audit excludes the role {role}")
    return match
