"""Values that an audit records about JupyterHub."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import AuditValue, RoleContext, UnitProperty, VenvVersion
from hostwright.standard.roles.jupyterhub import HOME, UNIT, VERSION, Jupyterhub


def audit_values(v: Jupyterhub, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield the state of JupyterHub's systemd unit, and the versions of its packages."""
    yield AuditValue("jupyterhub service", UnitProperty(UNIT), "active")
    yield AuditValue("jupyterhub", VenvVersion(HOME, "jupyterhub"), VERSION)
    yield AuditValue("dockerspawner", VenvVersion(HOME, "dockerspawner"))
