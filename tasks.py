"""The front door: one thin task per verb. ``invoke --list`` shows them, ``invoke --help VERB`` explains one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from invoke import Collection, Context, Exit, task

from lab.tasks import lab

OPTIONS = {
    "hosts": "which hosts: gpu01,gpu[03-09],@group,!gpu05,~regex, or all",
    "inventory": "another inventory than inventory/: a directory, a file, or a program that answers --list",
    "var": "a variable for this run, KEY=VALUE; may be given several times",
    "roles": "only these layers (and nothing that they need): cuda,cudnn",
    "json": "print one JSON document and nothing else",
    "ask_become_pass": "ask once for the sudo password",
    "accept_new": "write down the keys of hosts that are not known yet (a changed key is always an error)",
}
COMMON: dict[str, Any] = {"iterable": ["var"], "auto_shortflags": False}


def _help(*names: str, **more: str) -> dict[str, str]:
    """The help texts of these common options, with those of a verb's own."""
    return {**{name: OPTIONS[name] for name in names}, **more}


CONNECTED = ("hosts", "inventory", "var", "roles", "json", "ask_become_pass", "accept_new")


def _run(verb: str, **options: Any) -> None:
    from hostwright import cli

    status = cli.run(verb, options)
    if status:
        raise Exit(code=status)


@task(help=_help(*CONNECTED, out="save the plan here, for `invoke provision --plan FILE`"), **COMMON)
def plan(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: Sequence[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    out: str = "",
) -> None:
    """Show what stands between hosts and their stack: have → want, and a diff of each file. Changes nothing."""
    _run("plan", **_given(locals()))


@task(
    help=_help(
        *CONNECTED,
        check="only show the plan (the same as `invoke plan`)",
        plan="do exactly what this saved plan says, or nothing if the facts moved",
        no_reboot="leave a reboot that is wanted pending; the next plan still shows it",
        drain="where a GPU is in use: take work off the host (hostwright_drain) and wait until it has ended",
        force="change hosts whose GPUs are in use as well, ending what uses them",
        canary="so many hosts (or 10%) go first; if one of them fails, the others stay untouched",
        batch="so many hosts (or 10%) at once; as soon as one is done, the next begins",
        max_fail="so many hosts (or 10%) may fail or be unreachable; one more, and no further host is begun",
        resume="what the last run did not bring to an end: its hosts and options, planned afresh",
    ),
    **COMMON,
)
def provision(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: Sequence[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    check: bool = False,
    plan: str = "",
    no_reboot: bool = False,
    drain: bool = False,
    force: bool = False,
    canary: str = "",
    batch: str = "",
    max_fail: str = "",
    resume: bool = False,
) -> None:
    """Bring hosts to their stack and look again: nothing may differ afterwards."""
    _run("provision", **_given(locals()))


@task(help=_help(*CONNECTED), **COMMON)
def verify(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: Sequence[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
) -> None:
    """Check every layer of hosts with testinfra, after a look that must find nothing to change."""
    _run("verify", **_given(locals()))


CHANGING = ("hosts", "inventory", "json", "ask_become_pass", "accept_new")


@task(
    help=_help(
        *CHANGING,
        reason="why, for the other operators: RMA, burn-in, do not touch",
        for_="how long: 90m, 12h, 3d, 2w (default 8h)",
        force="replace the lock of somebody else",
        list="show the locks, and change nothing",
    ),
    auto_shortflags=False,
)
def lock(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    reason: str = "",
    for_: str = "",
    force: bool = False,
    list: bool = False,
) -> None:
    """Keep hosts from being changed, by anybody, for a while; looking at them stays possible."""
    _run("lock", **_given(locals()))


@task(help=_help(*CHANGING, force="take away the lock of somebody else"), auto_shortflags=False)
def unlock(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    force: bool = False,
) -> None:
    """Take the lock off hosts."""
    _run("unlock", **_given(locals()))


@task(
    name="list",
    default=True,
    help={"json": OPTIONS["json"], "limit": "how many of the last runs; 0 is all"},
    auto_shortflags=False,
)
def runs_list(c: Context, json: bool = False, limit: int = 20) -> None:
    """Show the last runs: who, when, on which hosts, and what came of it."""
    _run("runs", **_given(locals()))


@task(
    name="show",
    help={
        "run": "which run: its id, or the beginning of it; without it the last one",
        "hosts": "only these: gpu01,gpu[03-09]",
        "steps": "with the output of each step",
        "json": OPTIONS["json"],
    },
    auto_shortflags=False,
)
def runs_show(c: Context, run: str = "last", hosts: str = "", steps: bool = False, json: bool = False) -> None:
    """Show one run: what was done on each host, step by step, and how it ended."""
    _run("runs.show", **_given(locals()))


LOOKED_AT = ("inventory", "var", "roles", "json", "ask_become_pass", "accept_new")
NO_SUDO = "ask only what needs no root; what needs it is said to be not read"


@task(
    name="fleet",
    default=True,
    help=_help(
        *LOOKED_AT,
        hosts="which hosts (default: all of the inventory)",
        csv="write the audit as CSV to this file, or - for standard output",
        junit="write it as JUnit XML for a build server, likewise",
        prometheus="write it for node_exporter's textfile collector, likewise",
        html="write it as one page for a browser, which needs no network, likewise",
        watch="again and again, every 60s or 5m, until Ctrl-C",
        offline="ask no host: judge the facts of the last audit by the stack as it is now",
        no_sudo=NO_SUDO,
        at_once="so many hosts at a time (default: as many as this machine can hold open)",
        details="every value and every card, not only what is not as desired",
    ),
    **COMMON,
)
def audit_fleet(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: Sequence[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    csv: str = "",
    junit: str = "",
    prometheus: str = "",
    html: str = "",
    watch: str = "",
    offline: bool = False,
    no_sudo: bool = False,
    at_once: str = "",
    details: bool = False,
) -> None:
    """Show which hosts are not on their stack, since when, and what they suffer from. Changes nothing."""
    _run("audit", **_given(locals()))


@task(
    name="history",
    help=_help("inventory", "json", hosts="which hosts: gpu07, @rack3", since="how far back: 7d, 12w (default: all)"),
    auto_shortflags=False,
)
def audit_history(c: Context, hosts: str = "", inventory: str = "", json: bool = False, since: str = "") -> None:
    """Show what audits saw of hosts over time."""
    _run("audit.history", **_given(locals()))


@task(
    name="diff",
    help=_help("inventory", "json", hosts="which hosts (default: all)", since="how far back: 7d, 12h (default 7d)"),
    auto_shortflags=False,
)
def audit_diff(c: Context, hosts: str = "", inventory: str = "", json: bool = False, since: str = "7d") -> None:
    """Show what changed over the fleet between an earlier audit and the last one."""
    _run("audit.diff", **_given(locals()))


@task(help=_help("hosts", *LOOKED_AT, no_sudo=NO_SUDO), **COMMON)
def doctor(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: Sequence[str] | None = None,
    roles: str = "",
    json: bool = False,
    ask_become_pass: bool = False,
    accept_new: bool = False,
    no_sudo: bool = False,
) -> None:
    """Say what hosts suffer from: what is seen, its cause, its cure. Changes nothing."""
    _run("doctor", **_given(locals()))


@task(
    name="vars",
    help=_help(
        "hosts", "inventory", "var", "roles", "json", why="file and line of every definition, the winning one first"
    ),
    **COMMON,
)
def variables(
    c: Context,
    hosts: str = "",
    inventory: str = "",
    var: Sequence[str] | None = None,
    roles: str = "",
    json: bool = False,
    why: bool = False,
) -> None:
    """Show the variables of each role on hosts."""
    _run("vars", **_given(locals()))


@task(help=_help("hosts", "inventory", "json"), auto_shortflags=False)
def hosts(
    c: Context,
    hosts: str = "all",
    inventory: str = "",
    json: bool = False,
) -> None:
    """Show which hosts a selection names, folded, with their address, stack and groups."""
    _run("hosts", **_given(locals()))


@task(
    help={
        "stack": "the stack whose files are wanted (inventory/stacks/NAME.yml)",
        "inventory": OPTIONS["inventory"],
        "from": "take files from this directory first; what is missing there is fetched",
    },
    auto_shortflags=False,
)
def mirror(
    c: Context,
    stack: str = "tensorflow-2.9",
    inventory: str = "",
    from_: str = "",
) -> None:
    """Fetch the files of a stack to this machine, once, with their checksums."""
    _run("mirror", **_given(locals()))


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """What the user gave, without Invoke's context."""
    return {name: value for name, value in arguments.items() if name != "c"}


runs = Collection("runs", runs_list, runs_show)
audit = Collection("audit", audit_fleet, audit_history, audit_diff)
namespace = Collection(plan, provision, verify, audit, doctor, variables, hosts, mirror, lock, unlock, runs, lab)
