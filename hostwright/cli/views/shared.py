"""Output that several verbs have in common: errors, recommended commands, and notes about stand-in files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from hostwright.cli import console
from hostwright.cli.console import Hanging, Listed
from hostwright.cli.shell import advice
from hostwright.common.command import Command
from hostwright.common.errors import (
    Acceptance,
    BecomeError,
    Examination,
    Finding,
    HostError,
    HostwrightError,
    Locked,
    ProtocolError,
    Refused,
    ScriptFailed,
    SeveralFailed,
    StepFailed,
    Stopped,
    Unreachable,
    led,
)
from hostwright.common.text import count, printable
from hostwright.inventory.patterns import NAMED_CHARACTERS, fold, headed, terms
from hostwright.stack.store.artifacts import stand_ins_line

if TYPE_CHECKING:
    from hostwright.apply.rollout.rollout import Results
    from hostwright.fleet import TargetHost

_BAD = frozenset({"failed", "unreachable", "stopped"})
#: errors that explain a failure better than a known problem of the host
_NOTHING_FOUND_ON_HOST = (Unreachable, BecomeError, Refused, Stopped, ProtocolError)
_MOST_ALONE = 3  #: maximum number of hosts with the same error that are printed on separate lines


def warn(sentence: str) -> None:
    """Print ``sentence`` on standard error as a warning."""
    console.make_console(stderr=True).print(Text(printable(sentence), style="yellow"))


def note(sentence: str) -> None:
    """Print ``sentence``, about the next action of a verb, on standard error."""
    console.make_console(stderr=True).print(Text(printable(sentence)))


def print_document(kind: str, document: Mapping[str, Any]) -> None:
    """Print ``document`` for ``--json``, as ASCII, so that no text from a host can affect a terminal.

    ``kind`` names the JSON Schema of the document in ``docs/schemas``. The key ``schema`` is the schema's version, 1
    unless ``document`` sets another. The version increases when a field is removed or changes its meaning.
    """
    print(json.dumps({"kind": kind, "schema": 1, **document}, default=_plain))


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def errors_json(errors: tuple[HostError, ...], *, proved: bool = False) -> list[dict[str, Any]]:
    """Return errors as JSON values, one for each failed role of a host. With ``proved``, include results of the host's
    proofs.
    """
    return [
        {**_error(part, error.examination), **({"proofs": proofs_json(error.acceptance)} if proved else {})}
        for error in errors
        for part in (error.errors if isinstance(error, SeveralFailed) else [error])
    ]


def proofs_json(acceptance: tuple[Acceptance, ...]) -> list[dict[str, str]] | None:
    """Return the results of a host's proofs as JSON values; ``None`` without proofs."""
    return [{"proof": one.name, "outcome": one.outcome, "sentence": one.sentence} for one in acceptance] or None


def _error(error: HostwrightError, examination: Examination | None) -> dict[str, Any]:
    host, sentence = (error.host, error.sentence) if isinstance(error, HostError) else ("", str(error))
    step = {"step": asdict(error.step)} if isinstance(error, StepFailed) else {}
    found = {"examination": asdict(examination)} if examination else {}
    return {"host": host, "kind": type(error).__name__, "sentence": sentence, **step, **found}


def show_command(out: Console, what: str, command: Command, style: str = "dim") -> None:
    """Print ``what`` and ``command`` on a line that only the terminal wraps, so that the command can be
    copied whole.
    """
    out.print(Text(f"{what}: {advice.shown(command)}", style=style), soft_wrap=True)


def show_next(
    out: Console, command: Command, hosts: Sequence[str], targets: Sequence[TargetHost], *, done: Sequence[str] = ()
) -> None:
    """Print ``command`` for ``hosts`` as the recommended next command.

    For many hosts, the command contains the call's own ``--hosts`` pattern, minus other hosts. The pattern may then
    include hosts in ``done``.
    """
    chosen, pattern = fold(hosts), getattr(targets, "pattern", "")
    if len(chosen) > NAMED_CHARACTERS and pattern:
        others = fold({target.name for target in targets} - {*hosts, *done})
        shorter = ",!".join([pattern, *terms(others)])
        chosen = min(chosen, shorter, key=len)
    show_command(out, "next", command.on(chosen), "cyan")


def show_next_of_errors(
    out: Console,
    failed_command: Command,
    errors: Iterable[HostError],
    targets: Sequence[TargetHost],
    failed: Iterable[str] = (),
) -> None:
    """Print the recommended command for each error of ``failed_command``, and ``doctor`` for hosts in ``failed``."""
    found: dict[Command, list[str]] = {Command("doctor"): [*failed]} if failed else {}
    for error in errors:
        if then := next_of(error, failed_command):
            found.setdefault(then, []).append(error.host)
    for command, hosts in found.items():
        show_led(out, command, hosts, targets)


def show_led(out: Console, command: Command, hosts: Iterable[str], targets: Sequence[TargetHost]) -> None:
    """Print ``command`` for ``hosts`` as the next command. ``rebuild`` is recommended only for hosts with a BMC."""
    if command == Command("mirror"):
        show_command(out, "next", command, "cyan")
        return
    names = dict.fromkeys(hosts)
    if command == Command("rebuild", check=True):
        from hostwright.rebuild.bmc.settings import ADDRESS

        able = {target.name for target in targets if target.host.get(ADDRESS)}
        names = {name: None for name in names if name in able}
    if names:
        show_next(out, command, [*names], targets)


def next_of(error: HostwrightError, failed: Command) -> Command | None:
    """Return the recommended command after an error of the command ``failed``.

    ``None`` if no command helps, or if ``error`` already names the command or known problems.
    """
    if isinstance(error, SeveralFailed):
        return next((then for part in error.errors if (then := next_of(part, failed))), None)
    if error.lead or isinstance(error, _NOTHING_FOUND_ON_HOST):
        return None if error.lead.startswith(f"{failed.verb} ") else led(error.lead, failed)
    examined = isinstance(error, HostError) and error.examination is not None
    return None if examined or not isinstance(error, HostError) else Command("doctor")


def style_of_ends(words: Collection[str], good: frozenset[str]) -> str:
    """Return the style of the totals in ``words``. ``good`` are the words for successful results."""
    return "bold green" if good.issuperset(words) else "bold yellow" if _BAD.isdisjoint(words) else "bold red"


def show_sums(out: Console, words: Iterable[str]) -> None:
    """Print the number of hosts, in total and for each result; nothing for one host. ``words`` has one
    result per host.
    """
    numbers = Counter(words)
    if numbers.total() > 1:
        sums = ", ".join(f"{number} {word}" for word, number in numbers.most_common())
        out.print(Listed(f"{count(numbers.total(), 'host')}: {sums}", style="bold"))


def show_errors(errors: tuple[HostError, ...]) -> None:
    """Print errors on standard error, with known problems of their hosts.

    Equal errors of many hosts, and errors of stopped hosts, are printed once. A long list of names gets its own line.
    """
    err = console.make_console(stderr=True)
    alike: dict[object, list[HostError]] = {}
    for error in sorted(errors, key=lambda error: not isinstance(error, Stopped)):
        alike.setdefault(_told(error), []).append(error)
    for same in alike.values():
        shared = len(same) > _MOST_ALONE or isinstance(same[0], Stopped)
        head, below = headed(error.host for error in same) if shared else ("", "")
        for error in [_of_all(same)] if shared else same:
            err.print(show_error(error, head if below else ""))
            if below:
                err.print(Hanging(f"  {below}", style="dim"))
            for line in examination_lines(error.examination, error.host):
                err.print(line)


def show_error(error: HostwrightError, hosts: str = "") -> RenderableType:
    """Return ``error`` as text: its message, then its last output lines. ``hosts`` replaces the host's name."""
    if isinstance(error, SeveralFailed):
        return Group(*(show_error(part) for part in error.errors))
    text = str(error)
    if isinstance(error, HostError):
        text = hosts + text.removeprefix(error.host) if hosts else advice.of_host(text, error.host)
    # a text from a host must not begin a line, where it could pass for Hostwright's own message
    sentence = "\n    ".join(printable(text).splitlines())
    parts: list[RenderableType] = [Hanging(sentence, style="yellow" if isinstance(error, Locked) else "bold red")]
    if isinstance(error, StepFailed):
        step, known = error.step, error.sentence
        more = (f"role {step.role}", step.what, f"exit status {step.status}")
        text = ", ".join(each for each in more if each.removeprefix("role ").removeprefix("exit ") not in known)
        parts.append(Hanging(f"  {printable(text)}; its last lines:" if text else "  last lines of the step:"))
        parts += [Hanging(f"    │ {printable(line)}", style="dim") for line in step.tail]
    elif isinstance(error, ScriptFailed) and len(error.lines) > 1:
        parts.append(Hanging(f"  exit status {error.status}; its last lines:"))
        parts += [Hanging(f"    │ {printable(line)}", style="dim") for line in error.lines]
    return Group(*parts)


def _told(error: HostError) -> object:
    if isinstance(error, SeveralFailed):
        return id(error)
    lines = error.lines if isinstance(error, ScriptFailed) else ()
    return type(error), error.sentence, error.step if isinstance(error, StepFailed) else lines, error.examination


def _of_all(same: Sequence[HostError]) -> HostError:
    error = type(same[0]).__new__(type(same[0]))
    vars(error).update(vars(same[0]))
    error.host = fold(each.host for each in same)
    error.retell(error.sentence)
    return error


def examination_lines(examination: Examination | None, host: str) -> Iterator[Text]:
    """Yield the known problems found on ``host`` after a failure: grave ones with cause and fix, warnings by name."""
    yield from looked_lines(examination)
    for finding in examination.findings if examination else ():
        if finding.grave:
            yield from finding_lines(finding, "    ")
    yield from warning_lines(examination, host)


def looked_lines(examination: Examination | None) -> Iterator[Text]:
    """Yield lines about the checks after a failure: journals of systemd units, and a sentence about what
    was checked.
    """
    if examination is None:
        return
    for journal in examination.journals:
        yield Text(f"  the journal of {journal.unit}:")
        yield from (console.Hanging(f"    │ {line}", style="dim") for line in journal.lines)
    yield Text(f"  checks after the failure: {printable(examination.sentence)}", style="cyan")


def warning_lines(examination: Examination | None, host: str) -> Iterator[Text]:
    """Yield a line with the names of the warnings found on ``host`` after a failure."""
    if warnings := [finding.rule for finding in examination.findings if not finding.grave] if examination else []:
        doctor = Command("doctor", hosts=host)
        yield Text(f"    warnings: {', '.join(warnings)}; {doctor} explains them", style="dim")


def finding_lines(finding: Finding, indent: str) -> Iterator[Text]:
    """Yield lines about a known problem: evidence, cause, fix, and the command that explains it."""
    from hostwright.audit.reports.diagnosis import explanation

    yield from explanation(finding, indent)
    yield Text(f"{indent}known problem {finding.rule}; more: `{finding.link}`", style="dim")


def show_stand_ins(targets: Iterable[TargetHost], results: Results[Any], out: Console) -> None:
    """Print which vendors' files are replaced on reached hosts, so that nobody mistakes a lab for production."""
    away = {error.host for error in results.errors if isinstance(error, Unreachable)}.union(results.untouched)
    files = dict.fromkeys(file for target in targets if target.name not in away for file in target.stand_ins)
    if files:
        out.print(Text(stand_ins_line(files), style="magenta"))
