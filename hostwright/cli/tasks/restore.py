"""Verbs that bring hosts back: rebuild, rollback, trust, power."""

from __future__ import annotations

from hostwright.cli.tasks.options import CHANGING, NAMED, REACHED, verb
from hostwright.common.request import Request

TITLE = "Bring back"


@verb(
    *CHANGING,
    "yes",
    "timeline",
    from_="start with this way whatever the diagnosis: repair, relayer or reinstall",
    report="show how long rebuilds took, by phase: median and 95th percentile over the fleet",
    check="only diagnose, and show how each host would be rebuilt",
    prove="give a host back only after its proofs of this level, quick or full, have passed",
    since="with --report: how far back (7d, 12w; default: all)",
)
def rebuild(request: Request, from_: str = "", report: bool = False) -> int:
    """Bring hosts back from any state: repaired, reprovisioned, power-cycled or reinstalled, then verified.

    hostwright rebuild gpu01 --check
    """
    from hostwright.cli.verbs import rebuild as rebuilding

    if report:
        return rebuilding.rebuild_report(
            request,
        )
    return rebuilding.rebuild(
        request,
        start=from_,
    )


@verb(
    *CHANGING,
    "check",
    "yes",
    to="a stack name, or the beginning of a release's date or digest (default: the latest release)",
)
def rollback(request: Request, to: str = "") -> int:
    """Bring hosts back to the latest release that passed verification on them.

    hostwright rollback gpu01
    """
    from hostwright.cli.verbs import changes

    return changes.rollback(
        request,
        to=to,
    )


@verb(
    *NAMED,
    fingerprint="the fingerprint of the new key, as the host's console shows it: SHA256:…",
    forget="only remove the old key: the host is unknown afterwards",
)
def trust(request: Request, fingerprint: str = "", forget: bool = False) -> int:
    """Accept the new key of a reinstalled host, confirmed by its console, a fingerprint or you.

    hostwright trust gpu01
    """
    from hostwright.cli.verbs.reaching import trust as trusting

    return trusting.trust(
        request,
        fingerprint=fingerprint,
        forget=forget,
    )


@verb(
    *REACHED,
    "notify",
    "yes",
    order="on, off, cycle or status",
    boot="for the next boot only: network, media (with --image), or disk to cancel either",
    image="URL of the image for --boot media, reachable from the BMC",
    force="proceed even if the host is locked or its GPUs are in use; power off without a clean shutdown",
)
def power(request: Request, order: str, boot: str = "", image: str = "") -> int:
    """Power hosts on or off, power-cycle them or show their power state, through their BMCs.

    hostwright power status gpu01 gpu02
    """
    from hostwright.cli.verbs import power as powering

    return powering.power(
        request,
        order,
        boot=boot,
        image=image,
    )
