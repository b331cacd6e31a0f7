"""Verbs that change hosts: to their stack, and without layers of it."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import CHANGING, ends, helps


@task(
    help=helps(
        *CHANGING,
        "yes",
        check="only show the plan (the same as `invoke plan`)",
        plan="apply exactly this saved plan, or nothing if the host changed since it was saved",
        no_reboot="leave a needed reboot pending; the next plan shows it again",
        resume="continue the last run: its unfinished hosts, with its options and new plans",
    ),
    iterable=["inventory", "var"],
    auto_shortflags=False,
)
@ends
def provision(
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
    plan: str = "",
    no_reboot: bool = False,
    resume: bool = False,
    yes: bool = False,
) -> int:
    """Bring hosts to their stack, then probe again to confirm that nothing differs."""
    from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
    from hostwright.cli.verbs import changes

    return changes.provision(
        Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles),
        ConnectionOptions(ask_become_pass, accept_new),
        ChangeOptions(drain, no_reboot, RolloutOptions(canary, batch, max_fail), yes),
        force=force,
        check=check,
        saved=plan,
        resume=resume,
        as_json=json,
    )


@task(help=helps(*CHANGING, "check", "yes"), iterable=["inventory", "var"], auto_shortflags=False)
@ends
def remove(
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
    yes: bool = False,
) -> int:
    """Remove layers from hosts, last one first; keep what was there before and what others added."""
    from hostwright.apply.rollout.options import ChangeOptions, RolloutOptions
    from hostwright.cli.verbs import changes

    return changes.remove(
        Selection(hosts, tuple(inventory or ()), tuple(var or ()), roles),
        ConnectionOptions(ask_become_pass, accept_new),
        ChangeOptions(drain, rollout=RolloutOptions(canary, batch, max_fail), yes=yes),
        force=force,
        check=check,
        as_json=json,
    )
