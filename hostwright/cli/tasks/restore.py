"""Verbs that bring hosts back: rebuild, rollback, trust, power."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import CHANGING, NAMED, REACHED, ends, helps


@task(
    help=helps(
        *CHANGING,
        check="only diagnose, and show how each host would be rebuilt",
        from_="start with this way whatever the diagnosis: repair, relayer or reinstall",
        report="show how long rebuilds took, by phase: median and 95th percentile over the fleet",
        since="with --report: how far back (7d, 12w; default: all)",
    ),
    iterable=["inventory", "var"],
    auto_shortflags=False,
)
@ends
def rebuild(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    drain: bool = False,
    force: bool = False,
    canary: str = "",
    batch: str = "",
    max_fail: str = "",
    check: bool = False,
    from_: str = "",
    report: bool = False,
    since: str = "",
) -> int:
    """Bring hosts back from any state: repaired, reprovisioned, power-cycled or reinstalled, then verified."""
    from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
    from hostwright.cli.verbs import rebuild as verb

    selection = Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles)
    if report:
        return verb.rebuild_report(selection, since=since, as_json=json)
    return verb.rebuild(
        selection,
        ConnectionOptions(ask_become_pass, accept_new),
        ChangeOptions(drain, rollout=RolloutOptions(canary, batch, max_fail)),
        force=force,
        check=check,
        start=from_,
        as_json=json,
    )


@task(
    help=helps(
        *CHANGING,
        "check",
        "yes",
        to="a stack name, or the beginning of a release's date or digest (default: the latest release)",
    ),
    iterable=["inventory", "var"],
    auto_shortflags=False,
)
@ends
def rollback(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    var: list[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    check: bool = False,
    drain: bool = False,
    force: bool = False,
    canary: str = "",
    batch: str = "",
    max_fail: str = "",
    to: str = "",
    yes: bool = False,
) -> int:
    """Bring hosts back to the latest release that passed verification on them."""
    from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
    from hostwright.cli.verbs import changes

    return changes.rollback(
        Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles),
        ConnectionOptions(ask_become_pass, accept_new),
        ChangeOptions(drain, rollout=RolloutOptions(canary, batch, max_fail), yes=yes),
        force=force,
        check=check,
        to=to,
        as_json=json,
    )


@task(
    help=helps(
        *NAMED,
        fingerprint="the fingerprint of the new key, as the host's console shows it: SHA256:…",
        forget="only remove the old key: the host is unknown afterwards",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def trust(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    json: bool = False,
    fingerprint: str = "",
    forget: bool = False,
) -> int:
    """Accept the new key of a reinstalled host, confirmed by its console, a fingerprint or you."""
    from hostwright.cli.verbs import trust as verb

    return verb.trust(Selection(hosts, tuple(inventory or ())), fingerprint=fingerprint, forget=forget, as_json=json)


@task(
    help=helps(
        *REACHED,
        order="on, off, cycle or status",
        force="proceed even if the host is locked or its GPUs are in use; power off without a clean shutdown",
        boot="for the next boot only: network, media (with --image), or disk to cancel either",
        image="URL of the image for --boot media, reachable from the BMC",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def power(
    c: Context,
    order: str,
    hosts: str = "",
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    force: bool = False,
    boot: str = "",
    image: str = "",
) -> int:
    """Power hosts on or off, power-cycle them or show their power state, through their BMCs."""
    from hostwright.cli.verbs import power as verb

    selection, connection = Selection(hosts, tuple(inventory or ())), ConnectionOptions(ask_become_pass, accept_new)
    return verb.power(order, selection, connection, force=force, boot=boot, image=image, as_json=json)
