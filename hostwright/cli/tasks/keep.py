"""Verbs for what is kept: the files of stacks, the records of runs, the locks of hosts."""

from __future__ import annotations

from invoke import Context, task

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.tasks.options import REACHED, READ, ends, helps


@task(
    help=helps(
        *READ,
        stack="download only the files of this stack (default: those of all hosts' stacks)",
        from_="copy files from this directory first, and download only the missing ones",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def mirror(c: Context, stack: str = "", inventory: list[str] | None = None, from_: str = "") -> int:
    """Download the files of stacks to this machine once, and verify their checksums."""
    from hostwright.cli.verbs import inventory as verb

    return verb.mirror(Selection(inventory=tuple(inventory or ())), stack=stack, source=from_)


@task(
    name="list",
    default=True,
    help=helps("json", limit="how many of the latest runs to show; 0 shows all"),
    auto_shortflags=False,
)
@ends
def runs_list(c: Context, json: bool = False, limit: int = 20) -> int:
    """Show the latest runs: who, when, on which hosts, with what result."""
    from hostwright.cli.verbs import runs

    return runs.runs(limit=limit, as_json=json)


@task(
    name="show",
    help=helps(
        "json",
        run="the run's id, or the beginning of it (default: the latest run)",
        hosts="show only these hosts: gpu01,gpu[03-09]",
        steps="also show the output of each step",
    ),
    auto_shortflags=False,
)
@ends
def runs_show(c: Context, run: str = "last", hosts: str = "", steps: bool = False, json: bool = False) -> int:
    """Show a run: what was done on each host, step by step, and how it ended."""
    from hostwright.cli.verbs import runs

    return runs.runs_show(run=run, hosts=hosts, steps=steps, as_json=json)


@task(
    help=helps(
        *REACHED,
        reason="why, as shown to other operators: RMA, burn-in, do not touch",
        for_="how long the lock lasts: 90m, 12h, 3d, 2w (default: 8h)",
        force="replace somebody else's lock",
        list="only show existing locks",
    ),
    iterable=["inventory"],
    auto_shortflags=False,
)
@ends
def lock(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    reason: str = "",
    for_: str = "",
    force: bool = False,
    list: bool = False,
) -> int:
    """Lock hosts: nobody can change them for a while; read-only commands still work."""
    from hostwright.cli.verbs import locks

    selection, connection = Selection(hosts, tuple(inventory or ())), ConnectionOptions(ask_become_pass, accept_new)
    if list:
        return locks.locks(selection, connection, as_json=json)
    return locks.lock(selection, connection, reason=reason, lasts=for_, force=force, as_json=json)


@task(help=helps(*REACHED, force="remove somebody else's lock"), iterable=["inventory"], auto_shortflags=False)
@ends
def unlock(
    c: Context,
    hosts: str = "",
    inventory: list[str] | None = None,
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    force: bool = False,
) -> int:
    """Remove the lock from hosts."""
    from hostwright.cli.verbs import locks

    selection, connection = Selection(hosts, tuple(inventory or ())), ConnectionOptions(ask_become_pass, accept_new)
    return locks.unlock(selection, connection, force=force, as_json=json)
