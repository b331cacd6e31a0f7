"""Values of a host's workspaces that audits compare with the inventory."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.roles import AuditValue, RoleContext, Snippet
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.desired import runs_of
from hostwright.standard.roles.workspaces.states.access import KEPT
from hostwright.standard.roles.workspaces.states.running import digest

NETWORKS = Snippet(
    "networks",
    f"lost=$({KEPT.script})\nif [ -z \"$lost\" ]; then lost='kept out'; fi\nsay 'other hosts' \"$lost\"",
    root=True,
)
CONTAINERS = Snippet.beside(__file__, "audit_root.sh", "workspaces", root=True)


def audit_values(v: Workspaces, ctx: RoleContext) -> Iterator[AuditValue]:
    """Yield each workspace's state, definition and image, and whether users' containers are closed to other hosts.

    Images may differ between hosts and have no expected value.
    """
    for runs in runs_of(v, ctx):
        name = runs.name
        if runs.workspace.entry.kind != "batch":
            yield AuditValue(name, CONTAINERS.line(name), "running")
        yield AuditValue(f"{name} definition", CONTAINERS.line(f"{name} definition"), digest(runs.definition))
        yield AuditValue(f"{name} image", CONTAINERS.line(f"{name} image"))
    yield AuditValue("other hosts", NETWORKS.line("other hosts"), "kept out", derive=lambda text: text or None)
