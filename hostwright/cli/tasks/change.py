"""Verbs that change hosts: to their stack, and without layers of it."""

from __future__ import annotations

from hostwright.cli.tasks.options import CHANGING, PROVISION, verb
from hostwright.common.request import Request

TITLE = "Change"


@verb(
    *PROVISION,
    check="only show the plan (the same as `invoke plan`)",
)
def provision(request: Request) -> int:
    """Bring hosts to their stack, then probe again to confirm that nothing differs.

    hostwright provision gpu01
    hostwright provision all --canary 1 --batch 10% --max-fail 5
    """
    from hostwright.cli.verbs import changes

    return changes.provision(request)


@verb(*CHANGING, "check", "yes")
def remove(request: Request) -> int:
    """Remove layers from hosts, last one first; keep what was there before and what others added.

    hostwright remove gpu01 --roles driver
    """
    from hostwright.cli.verbs import changes

    return changes.remove(request)
