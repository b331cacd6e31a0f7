"""Values that an audit records about served models."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import AuditValue, RoleContext, Snippet
from hostwright.standard.roles.serving import Serving, model_servers

MODELS = Snippet.beside(__file__, "audit_root.sh", "serving", root=True)


def audit_values(v: Serving, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield served versions, live version and checksums of each model."""
    for space in model_servers(ctx):
        name, versions = space.name, space.entry.versions
        yield AuditValue(f"{name} versions", MODELS.line(f"{name} versions"), ",".join(map(str, sorted(versions))))
        yield AuditValue(f"{name} live", MODELS.line(f"{name} live"), str(space.entry.live))
        for number, digest in sorted(versions.items()):
            yield AuditValue(f"{name} version {number}", MODELS.line(f"{name} version {number}"), digest)
