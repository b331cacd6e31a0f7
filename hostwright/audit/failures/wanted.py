"""What a role wants of a host, for signs that are read from the role's own questions."""

from __future__ import annotations

from typing import TypeVar

from hostwright.audit.judging.look import Look, Unread

Kind = TypeVar("Kind")


def wanted(look: Look, role: str, kind: type[Kind]) -> Kind:
    """The role's first resource of this kind. Raises ``Unread`` when the role is not looked at, or has none."""
    resources = (
        resource
        for desired_role in look.desired.roles
        if desired_role.name == role
        for resource in desired_role.resources
    )
    match = next((resource for resource in resources if isinstance(resource, kind)), None)
    if match is None:
        raise Unread(f"the role {role} is not looked at")
    return match
