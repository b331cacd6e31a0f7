"""Drains running work from a host before a disruption, and undrains the host afterwards.

The inventory contains two idempotent commands, for Slurm, Kubernetes or another scheduler. A mark is written on the
host before the drain command, and removed after the undrain command. If a run is killed in between, the next run
undrains the host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from hostwright.apply.disturb import hooks as commands
from hostwright.apply.events import Emit, Waiting
from hostwright.common.durations import Clock, seconds
from hostwright.common.errors import FailedStep, HostError, InputError, InputErrors, StepFailed
from hostwright.common.input.validation import describe, unknown_name
from hostwright.common.quoting import sh
from hostwright.common.text import shown_limit
from hostwright.inventory import Host
from hostwright.plan.host.drained import PATH, SCHEMA, Drained, one_line
from hostwright.plan.host.occupancy import AtWork
from hostwright.resources.files.paths import write_script
from hostwright.transport.root.rootshell import RootShell

DRAIN, UNDRAIN, WHERE, TIMEOUT = (
    "hostwright_drain",
    "hostwright_undrain",
    "hostwright_drain_on",
    "hostwright_drain_timeout",
)
PLACES = ("controller", "host")
TIMEOUT_S = 3600.0  #: default time limit in seconds of a drain command, and of the wait for an idle host (our choice)
POLL_S = 5.0
NAMED = 5  #: maximum number of the host's users that a message lists
_MARK_TIMEOUT_S = 60.0
#: pattern of expressions that Ansible would replace. Other braces may be part of a kubectl template.
_TEMPLATE = re.compile(r"\{\{\s*(inventory_hostname|ansible_)\w*.*?\}\}")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The drain and undrain commands of a host, for ``/bin/sh``, with the time limit of each.

    ``where`` is the machine on which the commands run, one of ``PLACES``.
    """

    drain: str
    undrain: str
    where: str = "controller"
    timeout_s: float = TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Context:
    """The data that a drain or undrain command receives: host, reason and run."""

    host: str
    reason: str
    run: str
    operator: str = ""


@dataclass(frozen=True, slots=True)
class DrainDecision:
    """The decision whether work on a host may be disturbed: at once, after draining, or not at all. ``refusal`` is the
    reason for "not at all".
    """

    drain: bool = False
    refusal: str = ""


def read_hooks(host: Host) -> Hooks | None:
    """Return the drain and undrain commands in a host's variables; ``None`` if the host has none.

    Raises ``InputError`` with every invalid value.
    """
    given = {
        name: value for name in host.vars if name.startswith((DRAIN, UNDRAIN)) and (value := host.get(name)) is not None
    }
    wrong = {name: sentence for name, value in given.items() if (sentence := _wrong(name, value))}
    for name, other in ((DRAIN, UNDRAIN), (UNDRAIN, DRAIN)):
        if name in given and other not in given:
            wrong.setdefault(name, f"is set, but {other} is not; set both or neither")
    mistakes = [InputError(f"{name}: {sentence}", host.vars[name].origin.exact) for name, sentence in wrong.items()]
    if mistakes:
        raise mistakes[0] if len(mistakes) == 1 else InputErrors(mistakes)
    if DRAIN not in given:
        return None
    return Hooks(given[DRAIN], given[UNDRAIN], given.get(WHERE, PLACES[0]), seconds(given.get(TIMEOUT, TIMEOUT_S)))


def _wrong(name: str, value: Any) -> str:
    if name in (DRAIN, UNDRAIN):
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            return f"found {describe(value)}, expected a command for /bin/sh"
        if template := _TEMPLATE.search(value):
            return f"found the template {template[0]!r}, which is not rendered here; use $HOSTWRIGHT_HOST"
    elif name == WHERE:
        return "" if value in PLACES else f"found {describe(value)}, expected {' or '.join(PLACES)}"
    elif name == TIMEOUT:
        try:
            seconds(value)
        except ValueError as error:
            return str(error)
    else:
        return unknown_name(name, (DRAIN, UNDRAIN, WHERE, TIMEOUT))
    return ""


def decide(disturbs: str, at_work: AtWork, *, hooks: Hooks | None, drain: bool, force: bool) -> DrainDecision:
    """Decide whether and how the work on a host may be disturbed.

    ``disturbs`` describes the coming disruption (``Plan.disturbs``), and is empty for none. Configured commands also
    run on an idle host, because a scheduler may start work at any moment.

    >>> decide("a reboot", AtWork(), hooks=None, drain=False, force=False)
    DrainDecision(drain=False, refusal='')
    >>> decide("a reboot", AtWork(("python (pid 7)",)), hooks=Hooks("true", "true"), drain=True, force=False).drain
    True
    >>> decide("reboots the host", AtWork(("python (pid 7)",)), hooks=None, drain=False, force=False).refusal
    'the plan reboots the host, and the GPU is in use by python (pid 7); ...'
    """
    if force or not disturbs:
        return DrainDecision()
    if not at_work.everyone:
        return DrainDecision(drain=hooks is not None)
    if drain and hooks is not None:
        return DrainDecision(drain=True)
    begin = _in_use(disturbs, at_work, _named(at_work.everyone))
    configured = f"{DRAIN} and {UNDRAIN} in the inventory"
    if drain:
        return DrainDecision(refusal=f"{begin}. --drain needs commands: set {configured}, or pass --force")
    first = "--drain" if hooks is not None else f"--drain (with {configured})"
    how = f"pass {first} to drain the host first, or --force to disturb the work"
    return DrainDecision(refusal=f"{begin}; wait until this work has ended, {how}")


def overruled(disturbs: str, at_work: AtWork) -> str:
    """Return a message that names all users whose work the option ``--force`` disturbs; empty for an idle host.

    >>> overruled("reboots the host", AtWork(("python (pid 7)",)))
    '--force: the plan reboots the host, and the GPU is in use by python (pid 7); their work is disturbed'
    """
    if not disturbs or not at_work.everyone:
        return ""
    return f"--force: {_in_use(disturbs, at_work, ', '.join(at_work.everyone))}; their work is disturbed"


def _in_use(disturbs: str, at_work: AtWork, named: str) -> str:
    what = "the affected software" if set(at_work.others).issuperset(at_work.gpus) else "the GPU"
    return f"the plan {disturbs.replace('; ', ' and ')}, and {what} is in use by {named}"


def _named(users: tuple[str, ...]) -> str:
    rest = len(users) - NAMED
    return ", ".join(users[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def drain(shell: RootShell, hooks: Hooks, context: Context, emit: Emit) -> None:
    """Mark the host as drained, and run the drain command with a limit of ``hooks.timeout_s`` seconds.

    Raises ``HostError`` if the mark cannot be written, and ``StepFailed`` if the command fails. Once the mark exists,
    the host counts as drained.
    """
    emit(Waiting(context.host, "the drain command"))
    mark = Drained(
        context.run, context.operator, one_line(context.reason), datetime.now(UTC).isoformat(timespec="seconds")
    )
    text = json.dumps({"schema": SCHEMA, **asdict(mark)}) + "\n"
    script = write_script(PATH, text, mode="644", owner="root:root", check="", backup=False)
    _mark(shell, f"{script}\n{_sync_folder()}", f"{PATH} cannot be written, so the host was not drained")
    _run(shell, hooks, "drain", context, "nothing was changed, and the host is treated as drained")


def undrain(shell: RootShell, hooks: Hooks, context: Context, emit: Emit) -> None:
    """Run the undrain command, and remove the mark of a drained host.

    Raises ``HostError`` if the mark cannot be removed, and ``StepFailed`` if the command fails. After an error, the
    host still counts as drained, and the next run undrains it.
    """
    emit(Waiting(context.host, "the undrain command"))
    _run(shell, hooks, "undrain", context, "the host stays drained, and the next run tries again")
    script = sh("rm -f -- %s\n", PATH) + _sync_folder()
    _mark(shell, script, f"the host was undrained, but {PATH} cannot be removed")


def wait_until_idle(
    name: str, look: Callable[[], tuple[str, ...]], timeout_s: float, emit: Emit, clock: Clock | None = None
) -> None:
    """Call ``look`` every ``POLL_S`` seconds until ``look`` returns no users of the host ``name``.

    Raises ``HostError`` with the remaining users after ``timeout_s`` seconds, and the exceptions of ``look``.
    """
    clock = clock or Clock()
    deadline_s = clock.now_s() + timeout_s
    shown: tuple[str, ...] = ()
    while users := look():
        if clock.now_s() >= deadline_s:
            raise HostError(
                name,
                f"still in use by {_named(users)}, although the host was drained {shown_limit(timeout_s)} ago. Nothing "
                f"was changed, and the host stays drained; end that work or increase {TIMEOUT}, and provision again",
            )
        if users != shown:
            emit(Waiting(name, f"an idle host: in use by {_named(users)}"))
            shown = users
        clock.sleep(POLL_S)


def _run(shell: RootShell, hooks: Hooks, name: str, context: Context, otherwise: str) -> None:
    """Run the command ``name`` on the host. Raises ``StepFailed`` if the command fails; the message ends with
    ``otherwise``.
    """
    command = hooks.drain if name == "drain" else hooks.undrain
    environment = {
        "HOSTWRIGHT_HOST": context.host,
        "HOSTWRIGHT_ADDRESS": shell.session.host.address or context.host,
        "HOSTWRIGHT_REASON": one_line(context.reason),
        "HOSTWRIGHT_RUN": context.run,
    }
    if hooks.where == "host":
        ended = commands.run_there(shell, command, environment, hooks.timeout_s)
    else:
        ended = commands.run_here(command, environment, hooks.timeout_s)
    if ended.status == 0:
        return
    ending = f": {ended.lines[-1]}" if ended.lines else " and printed nothing"
    step = FailedStep(name, f"the command of hostwright_{name}", command, ended.status or 124, ended.lines)
    raise StepFailed(
        context.host, f"the {name} command (on the {hooks.where}) {_how(ended, hooks)}{ending}; {otherwise}", step
    )


def _how(ended: commands.Ended, hooks: Hooks) -> str:
    if ended.status is None:
        return f"did not end within {shown_limit(hooks.timeout_s)}"
    return f"was killed by signal {-ended.status}" if ended.status < 0 else f"ended with status {ended.status}"


def _mark(shell: RootShell, script: str, failure: str) -> None:
    shell.run(f"set -e\n{script}", timeout_s=_MARK_TIMEOUT_S, failure=failure)


def _sync_folder() -> str:
    """Return a command that writes the mark's directory to disk, so that a power failure does not undo the change."""
    return sh("sync -- %s", PurePosixPath(PATH).parent)
