"""Verbs that change hosts: to their stack, and without layers of it."""

from __future__ import annotations

from hostwright.cli.tasks.options import CHANGING, CHECK, PROVE, TIMELINE, YES, Given, verb

TITLE = "Change"


@verb(
    *CHANGING,
    YES,
    PROVE,
    TIMELINE,
    CHECK.told("only show the plan (the same as `invoke plan`)"),
    plan="apply exactly this saved plan, or nothing if the host changed since it was saved",
    no_reboot="leave a needed reboot pending; the next plan shows it again",
    optional=("resume",),
    resume="continue a run: its unfinished hosts, with its options and new plans; without a RUN, the last one that "
    "left hosts which no later run worked on",
    executor="who works on the hosts: local (this machine), or dask (the workers of a Dask cluster)",
    scheduler="the address of the Dask cluster's scheduler: tls://HOST:8786 (tcp:// sends no secrets)",
)
def provision(
    given: Given,
    plan: str = "",
    no_reboot: bool = False,
    resume: str | bool = "",
    executor: str = "",
    scheduler: str = "",
) -> int:
    """Bring hosts to their stack, then probe again to confirm that nothing differs.

    hostwright provision gpu01
    hostwright provision all --canary 1 --batch 10% --max-fail 5
    """
    from hostwright.cli.verbs import changes

    return changes.provision(
        given.selection,
        given.connection,
        given.change(no_reboot=no_reboot, executor=executor, scheduler=scheduler),
        force=given.force,
        check=given.check,
        saved=plan,
        resume=resume,
        prove=given.prove,
        timeline=given.timeline,
        as_json=given.json,
    )


@verb(*CHANGING, CHECK, YES)
def remove(given: Given) -> int:
    """Remove layers from hosts, last one first; keep what was there before and what others added.

    hostwright remove gpu01 --roles driver
    """
    from hostwright.cli.verbs import changes

    selection, connection, change = given.selection, given.connection, given.change()
    return changes.remove(selection, connection, change, force=given.force, check=given.check, as_json=given.json)
