"""Prints the output of one command on many hosts. Equal results are printed once with the names of their hosts."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group

from hostwright.apply.commands.remote import CommandResult, RemoteCommand
from hostwright.apply.commands.running import sentence_of
from hostwright.apply.events import Emit, Event, HostEnded, Note
from hostwright.apply.rollout.rollout import result_of
from hostwright.apply.run import RunResults
from hostwright.cli import console
from hostwright.cli.views.progress import Counting, TerminalView
from hostwright.cli.views.shared import (
    errors_json,
    print_document,
    show_command,
    show_errors,
    show_next_of_errors,
    warn,
)
from hostwright.common.command import Command
from hostwright.common.text import count, one_line, shown_seconds
from hostwright.fleet import TargetHost
from hostwright.inventory.patterns import headed

KIND = "command"


class CommandView(TerminalView):
    """The display while a command runs: the number of finished hosts, and the names of the last unfinished hosts."""

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:  # noqa: ARG002
        """Return a counter of hosts on which the command has ended."""
        return _Ended("ended", (target.name for target in targets))


class _Ended(Counting):
    def __call__(self, event: Event) -> None:
        if isinstance(event, Note):
            warn(f"{event.host}: {event.text}")
        elif isinstance(event, HostEnded):
            self.count(event.host)


def show_commands(
    command: RemoteCommand,
    ended: RunResults[CommandResult],
    targets: Sequence[TargetHost] = (),
    *,
    took_s: float = 0.0,
    as_json: bool,
) -> None:
    """Print the command's results, failures last, then the totals and recommended commands. The command took ``took_s``
    seconds on all hosts.
    """
    if as_json:
        print_document(KIND, document(command, ended))
        return
    out = Console(highlight=False)
    for same in folded(ended.results.values):
        _show(out, command, same)
    show_errors(ended.results.errors)
    good = not ended.results.errors and all(result.passed for result in ended.results.values)
    _line(out, _summary(command, ended, took_s), "bold green" if good else "bold red")
    ours = console.make_console()
    if ended.run:
        show_command(ours, "every output", Command("runs.show", run=ended.run, steps=True))
    again = Command("run", root=command.root, behind=command.words)
    show_next_of_errors(ours, again, ended.results.errors, targets)


def folded(results: Iterable[CommandResult]) -> list[list[CommandResult]]:
    """Return ``results`` in groups that differ only in host and duration: successes first, then by number of hosts."""
    alike: dict[tuple[object, ...], list[CommandResult]] = {}
    for result in results:
        alike.setdefault((result.end, result.status, result.stdout, result.stderr), []).append(result)
    return sorted(alike.values(), key=lambda same: (not same[0].passed, -len(same)))


def document(command: RemoteCommand, ended: RunResults[CommandResult]) -> dict[str, Any]:
    """Return the document for ``--json``. Print the document as ASCII, because it contains untrusted texts from
    hosts.
    """
    results = ended.results
    return {
        "run": ended.run,
        "command": list(command.words),
        "root": command.root,
        "timeout_s": command.limit_s,
        "status": ended.status,
        "hosts": [asdict(result) for result in results.values],
        "errors": errors_json(results.errors),
        "untouched": list(results.untouched),
        "stopped_because": results.stopped_because,
    }


def _show(out: Console, command: RemoteCommand, same: Sequence[CommandResult]) -> None:
    first = same[0]
    head, below = headed(result.host for result in same)
    _line(out, f"{head}: {_how(first, command)}", "bold green" if first.passed else "bold red")
    if below:
        _line(out, f"  {below}", "dim")
    for line in _lines(first.stdout):
        _line(out, f"  │ {line}")
    if first.stderr.strip():
        _line(out, "  standard error:", "dim")
        for line in _lines(first.stderr):
            _line(out, f"  │ {line}")


def _how(result: CommandResult, command: RemoteCommand) -> str:
    name = ""
    # shells add 128 to the number of the signal that ended a program
    if result.status is not None and result.status > 128:
        name = next((f" ({sig.name})" for sig in signal.Signals if sig == result.status - 128), "")
    nothing = "" if result.stdout.strip() or result.stderr.strip() else ", no output"
    return sentence_of(result, command) + name + nothing


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of ``text`` from a host, without control characters. Only a line feed ends a line."""
    if text.strip():
        for line in text.removesuffix("\n").split("\n"):
            yield one_line(line.removesuffix("\r"))


def _line(out: Console, line: str, style: str = "") -> None:
    if out.is_terminal:
        # rich would convert a single text to a text without a hanging indent
        out.print(Group(console.Hanging(line, style=style)))
    else:
        print(line)


def _summary(command: RemoteCommand, ended: RunResults[CommandResult], took_s: float) -> str:
    results = ended.results
    passed = [result for result in results.values if result.passed]
    different = len({(result.stdout, result.stderr) for result in passed})
    outputs = f" ({different} different outputs)" if different > 1 else ""
    parts = [f"{len(passed)} exit 0{outputs}"] if passed else []
    others = Counter(sentence_of(result, command) for result in results.values if not result.passed)
    others.update(result_of(error) for error in results.errors)
    parts += [f"{number} {how}" for how, number in others.most_common()]
    parts += [f"{len(results.untouched)} untouched ({results.stopped_because})"] if results.untouched else []
    return f"{count(len(results.names), 'host')} in {shown_seconds(took_s)}: {', '.join(parts)}"
