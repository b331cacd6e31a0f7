"""Values that an audit records about the proxy."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import DISTRIBUTION, AuditValue, PackageVersion, RoleContext, Snippet, UnitProperty
from hostwright.standard.roles.proxy import UNIT, Proxy

CERTIFICATE = Snippet.beside(__file__, "audit_root.sh", "proxy", root=True)


def audit_values(v: Proxy, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield nginx's version, the state of its unit, and the certificate's validity."""
    yield AuditValue("nginx", PackageVersion("nginx"), among=DISTRIBUTION)
    yield AuditValue("nginx service", UnitProperty(UNIT), "active")
    yield AuditValue("certificate", CERTIFICATE.line("certificate"), "valid")
