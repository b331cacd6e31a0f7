"""Values that an audit records about the image registry."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import DISTRIBUTION, AuditValue, PackageVersion, RoleContext, Snippet, UnitProperty
from hostwright.standard.roles.registry import UNIT, Registry

CERTIFICATE = Snippet.beside(__file__, "audit_root.sh", "registry", root=True)


def audit_values(v: Registry, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield package version, unit state and certificate validity, only for the registry's host."""
    if v.serve:
        yield AuditValue("docker-registry", PackageVersion("docker-registry"), among=DISTRIBUTION)
        yield AuditValue("registry service", UnitProperty(UNIT), "active")
        yield AuditValue("certificate", CERTIFICATE.line("certificate"), "valid")
