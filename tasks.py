"""The front door: one thin task per verb. ``invoke --list`` shows them, ``invoke --help VERB`` explains one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from invoke import Collection, Context, Exit, Task, task

from lab.tasks import lab


@dataclass(frozen=True)
class Option:
    """An option of a verb: what it means, and its value when nobody gives it (``None``: it may be given again and
    again, ``REQUIRED``: it stands without a flag and must be there)."""

    help: str
    default: Any = ""


REQUIRED = inspect.Parameter.empty
FLAG = False

#: options that mean the same to every verb
COMMON: Mapping[str, Option] = {
    "hosts": Option("which hosts: gpu01,gpu[03-09],@group,!gpu05,~regex, or all"),
    "inventory": Option("another inventory than inventory/: a directory, a file, or a program that answers --list"),
    "var": Option("a variable for this run, KEY=VALUE; may be given several times", None),
    "roles": Option("only these layers (and nothing that they need): cuda,cudnn"),
    "json": Option("print one JSON document and nothing else", FLAG),
    "ask_become_pass": Option("ask once for the sudo password", FLAG),
    "accept_new": Option(
        "write down the keys of hosts that are not known yet (a changed key is always an error)", FLAG
    ),
    "check": Option("only show what would be done", FLAG),
    "drain": Option("where a GPU is in use: take work off the host (hostwright_drain), and wait for its end", FLAG),
    "force": Option("change hosts whose GPUs are in use as well, ending what uses them", FLAG),
    "canary": Option("so many hosts (or 10%) go first; if one of them fails, the others stay untouched"),
    "batch": Option("so many hosts (or 10%) at once; as soon as one is done, the next begins"),
    "max_fail": Option("so many hosts (or 10%) may fail or be unreachable; one more, and no further host is begun"),
    "no_sudo": Option("ask only what needs no root; what needs it is said to be not read", FLAG),
    "since": Option("how far back: 7d, 12w (default: all)"),
}
NAMED = ("hosts", "inventory", "json")
REACHED = (*NAMED, "ask_become_pass", "accept_new")  #: for verbs that connect to hosts
WANTED = ("hosts", "inventory", "var", "roles", "json", "ask_become_pass", "accept_new")  #: and know what they shall be
DISTURBING = ("drain", "force")
ROLLING = ("canary", "batch", "max_fail")


def _verb(verb: str, summary: str, *common: str, name: str = "", default: bool = False, **own: Option) -> Task[Any]:
    """The task of a verb: options of ``COMMON``, then its own, which win; what it does is in ``hostwright.cli``."""
    options = {**{one: COMMON[one] for one in common}, **own}

    def body(c: Context, **given: Any) -> None:  # noqa: ARG001 - Invoke's context, which no verb needs
        from hostwright import cli

        status = cli.run(verb, given)
        if status:
            raise Exit(code=status)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [one for one, option in options.items() if option.default is REQUIRED]
    order = [*first, *(one for one in options if one not in first)]
    parameters = [inspect.Parameter(one, kind, default=options[one].default) for one in order]
    body.__signature__ = inspect.Signature([inspect.Parameter("c", kind), *parameters])  # type: ignore[attr-defined]
    body.__name__, body.__doc__ = name or verb, summary
    made = task(
        body,
        name=name or verb,
        default=default,
        positional=first,
        iterable=[one for one, option in options.items() if option.default is None],
        help={one.rstrip("_"): option.help for one, option in options.items()},
        auto_shortflags=False,
    )
    return cast("Task[Any]", made)


plan = _verb(
    "plan",
    "Show what stands between hosts and their stack: have → want, and a diff of each file. Changes nothing.",
    *WANTED,
    out=Option("save the plan here, for `invoke provision --plan FILE`"),
)
provision = _verb(
    "provision",
    "Bring hosts to their stack and look again: nothing may differ afterwards.",
    *(*WANTED, *DISTURBING, *ROLLING),
    check=Option("only show the plan (the same as `invoke plan`)", FLAG),
    plan=Option("do exactly what this saved plan says, or nothing if the facts moved"),
    no_reboot=Option("leave a reboot that is wanted pending; the next plan still shows it", FLAG),
    resume=Option("what the last run did not bring to an end: its hosts and options, planned afresh", FLAG),
)
verify = _verb(
    "verify",
    "Check every layer of hosts with testinfra, after a look that must find nothing to change.",
    *WANTED,
)
remove = _verb(
    "remove",
    "Take layers away from hosts, in reverse; what was there before and what others put there stays.",
    *(*WANTED, "check", *DISTURBING, *ROLLING),
)
rebuild = _verb(
    "rebuild",
    "Bring hosts back from whatever state they are in: repaired, laid again, power cycled or reinstalled; verified.",
    *(*WANTED, *DISTURBING, *ROLLING),
    check=Option("only look, and say which way would be taken", FLAG),
    from_=Option("begin with this way, whatever is found: repair, relayer or reinstall"),
    report=Option("show how long rebuilds took, by phase: median and p95 over the fleet", FLAG),
    since=Option("with --report: how far back: 7d, 12w (default: all)"),
)
rollback = _verb(
    "rollback",
    "Bring hosts back to the last release that they were verified with.",
    *(*WANTED, "check", *DISTURBING, *ROLLING),
    to=Option("a stack's name, or how the date or digest of a release begins (default: the last one)"),
)
audit_fleet = _verb(
    "audit",
    "Show which hosts are not on their stack, since when, and what they suffer from. Changes nothing.",
    *WANTED,
    name="fleet",
    default=True,
    hosts=Option("which hosts (default: all of the inventory)"),
    csv=Option("write the audit as CSV to this file, or - for standard output"),
    junit=Option("write it as JUnit XML for a build server, likewise"),
    prometheus=Option("write it for node_exporter's textfile collector, likewise"),
    html=Option("write it as one page for a browser, which needs no network, likewise"),
    watch=Option("again and again, every 60s or 5m, until Ctrl-C"),
    offline=Option("ask no host: judge the facts of the last audit by the stack as it is now", FLAG),
    no_sudo=COMMON["no_sudo"],
    at_once=Option("so many hosts at a time (default: as many as this machine can hold open)"),
    details=Option("every value and every card, not only what is not as desired", FLAG),
)
audit_history = _verb("audit.history", "Show what audits saw of hosts over time.", *(*NAMED, "since"), name="history")
audit_diff = _verb(
    "audit.diff",
    "Show what changed over the fleet between an earlier audit and the last one.",
    *NAMED,
    name="diff",
    hosts=Option("which hosts (default: all)"),
    since=Option("how far back: 7d, 12h (default 7d)", "7d"),
)
doctor = _verb(
    "doctor",
    "Say what hosts suffer from: what is seen, its cause, its cure. Changes nothing.",
    *(*WANTED, "no_sudo"),
)
variables = _verb(
    "vars",
    "Show the variables of each role on hosts.",
    *("hosts", "inventory", "var", "roles", "json"),
    why=Option("file and line of every definition, the winning one first", FLAG),
)
hosts = _verb(
    "hosts",
    "Show which hosts a selection names, folded, with their address, stack and groups.",
    *NAMED,
    hosts=Option(COMMON["hosts"].help, "all"),
)
mirror = _verb(
    "mirror",
    "Fetch the files of a stack to this machine, once, with their checksums.",
    stack=Option("the stack whose files are wanted (inventory/stacks/NAME.yml)", "tensorflow-2.9"),
    inventory=COMMON["inventory"],
    from_=Option("take files from this directory first; what is missing there is fetched"),
)
runs_list = _verb(
    "runs",
    "Show the last runs: who, when, on which hosts, and what came of it.",
    "json",
    name="list",
    default=True,
    limit=Option("how many of the last runs; 0 is all", 20),
)
runs_show = _verb(
    "runs.show",
    "Show one run: what was done on each host, step by step, and how it ended.",
    name="show",
    run=Option("which run: its id, or the beginning of it; without it the last one", "last"),
    hosts=Option("only these: gpu01,gpu[03-09]"),
    steps=Option("with the output of each step", FLAG),
    json=COMMON["json"],
)
lock = _verb(
    "lock",
    "Keep hosts from being changed, by anybody, for a while; looking at them stays possible.",
    *REACHED,
    reason=Option("why, for the other operators: RMA, burn-in, do not touch"),
    for_=Option("how long: 90m, 12h, 3d, 2w (default 8h)"),
    force=Option("replace the lock of somebody else", FLAG),
    list=Option("show the locks, and change nothing", FLAG),
)
unlock = _verb(
    "unlock", "Take the lock off hosts.", *REACHED, force=Option("take away the lock of somebody else", FLAG)
)
trust = _verb(
    "trust",
    "Take over the key of a host that was installed anew: by its console, its fingerprint, or a question.",
    *NAMED,
    fingerprint=Option("the new key's, as the host's console shows it: SHA256:…"),
    forget=Option("only take the old key out: the host is unknown afterwards", FLAG),
)
power = _verb(
    "power",
    "Switch hosts on, off, or off and on by their BMCs, or show what those say.",
    *REACHED,
    order=Option("on, off, cycle or status", REQUIRED),
    force=Option("even where it is locked or its GPUs are in use; off without asking the system first", FLAG),
    boot=Option("boot once, at this start, from network, media (with --image) or disk (take both back)"),
    image=Option("the URL of the image for --boot media, as the BMC reaches it"),
)

runs = Collection("runs", runs_list, runs_show)
audit = Collection("audit", audit_fleet, audit_history, audit_diff)
namespace = Collection(
    *(plan, provision, verify, remove, rebuild, rollback),
    *(audit, doctor, variables, hosts, mirror, runs),
    *(lock, unlock, trust, power, lab),
)
