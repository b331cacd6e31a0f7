"""Verbs that bring hosts back: rebuild, rollback, trust, power."""

from __future__ import annotations

from hostwright.cli.tasks.options import (
    CHANGING,
    CHECK,
    FORCE,
    NAMED,
    NOTIFIED,
    PROVE,
    REACHED,
    SINCE,
    TIMELINE,
    YES,
    Given,
    verb,
)

TITLE = "Bring back"


@verb(
    *CHANGING,
    YES,
    CHECK.told("only diagnose, and show how each host would be rebuilt"),
    PROVE.told("give a host back only after its proofs of this level, quick or full, have passed"),
    SINCE.told("with --report: how far back (7d, 12w; default: all)"),
    TIMELINE,
    from_="start with this way whatever the diagnosis: repair, relayer or reinstall",
    report="show how long rebuilds took, by phase: median and 95th percentile over the fleet",
)
def rebuild(given: Given, from_: str = "", report: bool = False) -> int:
    """Bring hosts back from any state: repaired, reprovisioned, power-cycled or reinstalled, then verified.

    hostwright rebuild gpu01 --check
    """
    from hostwright.cli.verbs import rebuild as rebuilding

    if report:
        return rebuilding.rebuild_report(given.selection, since=given.since, as_json=given.json)
    return rebuilding.rebuild(
        given.selection,
        given.connection,
        given.change(),
        force=given.force,
        check=given.check,
        start=from_,
        prove=given.prove,
        timeline=given.timeline,
        as_json=given.json,
    )


@verb(
    *CHANGING,
    CHECK,
    YES,
    to="a stack name, or the beginning of a release's date or digest (default: the latest release)",
)
def rollback(given: Given, to: str = "") -> int:
    """Bring hosts back to the latest release that passed verification on them.

    hostwright rollback gpu01
    """
    from hostwright.cli.verbs import changes

    return changes.rollback(
        given.selection,
        given.connection,
        given.change(),
        force=given.force,
        check=given.check,
        to=to,
        as_json=given.json,
    )


@verb(
    *NAMED,
    fingerprint="the fingerprint of the new key, as the host's console shows it: SHA256:…",
    forget="only remove the old key: the host is unknown afterwards",
)
def trust(given: Given, fingerprint: str = "", forget: bool = False) -> int:
    """Accept the new key of a reinstalled host, confirmed by its console, a fingerprint or you.

    hostwright trust gpu01
    """
    from hostwright.cli.verbs.reaching import trust as trusting

    return trusting.trust(given.selection, fingerprint=fingerprint, forget=forget, as_json=given.json)


@verb(
    *REACHED,
    NOTIFIED,
    YES,
    FORCE.told("proceed even if the host is locked or its GPUs are in use; power off without a clean shutdown"),
    order="on, off, cycle or status",
    boot="for the next boot only: network, media (with --image), or disk to cancel either",
    image="URL of the image for --boot media, reachable from the BMC",
)
def power(given: Given, order: str, boot: str = "", image: str = "") -> int:
    """Power hosts on or off, power-cycle them or show their power state, through their BMCs.

    hostwright power status gpu01 gpu02
    """
    from hostwright.cli.verbs import power as powering

    return powering.power(
        order,
        given.selection,
        given.connection,
        force=given.force,
        yes=given.yes,
        boot=boot,
        image=image,
        as_json=given.json,
    )
