"""Yes or no: what disturbs or destroys is asked once at a terminal, before anything is changed.

``--yes`` and ``HOSTWRIGHT_YES=1`` answer beforehand. Where nobody can be asked, what destroys is refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TextIO

from rich.console import Group

from hostwright.cli import console
from hostwright.cli.console import Hanging
from hostwright.common.errors import FAILED, INTERRUPTED, HostwrightError, InputError
from hostwright.common.text import count, one_line
from hostwright.inventory.patterns import counted

if TYPE_CHECKING:
    from hostwright.apply.rollout.options import ChangeOptions
    from hostwright.plan.planning import HostPlan
    from hostwright.rebuild.ways.ways import Decision

VARIABLE = "HOSTWRIGHT_YES"
YES = "yes"  #: what the operator must type, whole
_TRUE = ("1", "true", "yes")
_NAMED = 5  #: whose work is named of a host
#: what a rebuild does on the ways that it asks about
_WAYS = {
    "reinstall": "installs a new operating system on {}: their disks are overwritten",
    "relayer": "removes all layers from {}, and provisions them again",
    "power cycle": "power-cycles or reboots {}",
}


class Declined(HostwrightError):
    """The operator was asked, and did not say yes: nothing was changed."""

    def __init__(self, message: str, exit_status: int = FAILED):
        super().__init__(message)
        self.exit_status = exit_status


def answered(given: bool) -> bool:
    """Whether every question is answered with yes beforehand: by ``--yes``, or by the environment."""
    return given or os.environ.get(VARIABLE, "").strip().lower() in _TRUE


def can_ask(*, as_json: bool = False) -> bool:
    """Whether somebody sits at a terminal. Who wants JSON is a program."""
    streams: tuple[TextIO | None, ...] = (sys.stdin, sys.stderr)  # None where a shell has closed it (`<&-`)
    return not as_json and all(stream is not None and stream.isatty() for stream in streams)


def says_yes(question: str) -> bool:
    """Ask on standard error; only the whole word is a yes. Raises ``Declined`` on Ctrl-C."""
    sys.stderr.write(f"{question} Type {YES} to go on: ")
    sys.stderr.flush()
    try:
        return sys.stdin.readline().strip().lower() == YES
    except KeyboardInterrupt as error:
        sys.stderr.write("\n")
        raise Declined("stopped at the question: nothing was changed", INTERRUPTED) from error


def agree(what: str, consequences: Iterable[str], hosts: int, *, yes: bool, as_json: bool = False) -> None:
    """Have a verb's consequences agreed to: nothing is asked after ``--yes``, a terminal is asked once, and where
    nobody can be asked the verb is refused; ``what`` says there what it does. Raises ``Declined`` and ``InputError``.
    """
    refuse_unasked(what, yes=yes, as_json=as_json)
    if not yes:
        ask(consequences, hosts)


def refuse_unasked(what: str, *, yes: bool, as_json: bool = False) -> None:
    """Raise ``InputError`` where nobody agreed to what a verb does and nobody can be asked."""
    if not yes and not can_ask(as_json=as_json):
        sentence = f"{what}, and nobody can be asked here: no host was touched; --yes (or {VARIABLE}=1) agrees"
        raise InputError(sentence, "--yes")


def ask(consequences: Iterable[str], hosts: int) -> None:
    """Name what is about to happen, and ask once; do nothing if nothing is. Raises ``Declined``."""
    lines = list(consequences)
    if not lines:
        return
    err = console.make_console(stderr=True)
    for line in ("Before anything is changed, this run:", *(f"  {line}" for line in lines)):
        err.print(Group(Hanging(line, style="yellow")), soft_wrap=not err.is_terminal)
    if not says_yes(f"Go on with {count(hosts, 'host')}?"):
        raise Declined(f"the answer was not {YES}: nothing was changed")


def of_plans(
    plans: Iterable[HostPlan], change: ChangeOptions, *, force: bool, local: Collection[str] = ()
) -> Iterator[str]:
    """What is rebooted, whose work is ended, and what is lost for good. A host whose work keeps it from being changed
    (neither ``--drain`` nor ``--force``) is refused later, and nothing happens to it; a ``local`` one is not rebooted.
    """
    said: dict[str, list[str]] = {}
    for each in plans:
        if each.plan.refusals or (each.busy and not (change.drain or force)):
            continue
        if each.plan.reboot and not change.no_reboot and each.host not in local:
            said.setdefault(f"reboots {{}}: {_plain(each.plan.reboot)}", []).append(each.host)
        if each.busy and force and not change.drain:
            more = [f"{len(each.busy) - _NAMED} more"] if len(each.busy) > _NAMED else []
            users = ", ".join([*map(_plain, each.busy[:_NAMED]), *more])
            said.setdefault(f"ends work on {{}}: {users}", []).append(each.host)
        if each.losses:
            what = ", ".join(map(_plain, each.losses))
            said.setdefault(f"takes away from {{}}, for good: {what}", []).append(each.host)
    return _folded(said)


def of_decisions(decisions: Mapping[str, Decision]) -> Iterator[str]:
    """What a rebuild does beyond repair, and where a new operating system may follow."""
    said: dict[str, list[str]] = {}
    for host, decision in decisions.items():
        if decision.refusal:
            continue
        if decision.way in _WAYS:
            said.setdefault(_WAYS[decision.way], []).append(host)
        if "reinstall" in decision.escalation:
            said.setdefault(f"if that does not help, {_WAYS['reinstall']}", []).append(host)
    return _folded(said)


def reinstalled(decisions: Mapping[str, Decision]) -> list[str]:
    """The hosts whose disks a rebuild overwrites, or may overwrite."""
    ways = {host: (each.way, *each.escalation) for host, each in decisions.items() if not each.refusal}
    return [host for host, each in ways.items() if "reinstall" in each]


def _folded(said: Mapping[str, list[str]]) -> Iterator[str]:
    return (sentence.replace("{}", counted(hosts), 1) for sentence, hosts in said.items())


def _plain(text: str) -> str:
    """A host's text in one line, in which no host's name is filled in."""
    return one_line(text).replace("{}", "{ }")
