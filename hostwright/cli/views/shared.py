"""What several verbs show or print: errors, and the files that are not the vendor's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from hostwright.cli import console
from hostwright.common.errors import Finding, HostError, HostwrightError, SeveralFailed, StepFailed
from hostwright.common.text import printable, short
from hostwright.stack.store.artifacts import stand_ins_line

if TYPE_CHECKING:
    from hostwright.fleet import Member


def warn(sentence: str) -> None:
    """Print a sentence that the operator should see, on standard error."""
    console.make_console(stderr=True).print(Text(printable(sentence), style="yellow"))


def errors_json(errors: tuple[HostError, ...]) -> list[dict[str, Any]]:
    """Errors as JSON values; of a host on which several roles failed, each."""
    return [
        _error(part) for error in errors for part in (error.errors if isinstance(error, SeveralFailed) else [error])
    ]


def _error(error: HostwrightError) -> dict[str, Any]:
    host, sentence = (error.host, error.sentence) if isinstance(error, HostError) else ("", str(error))
    step = {"step": asdict(error.step)} if isinstance(error, StepFailed) else {}
    return {"host": host, "kind": type(error).__name__, "sentence": sentence, **step}


def show_errors(errors: tuple[HostError, ...]) -> None:
    """Print errors on standard error."""
    err = console.make_console(stderr=True)
    for error in errors:
        err.print(console.show_error(error))


def finding_lines(finding: Finding, indent: str) -> Iterator[Text]:
    """A known problem: the lines that tell it, what went wrong, what to do, and where more is said."""
    for line in finding.evidence:
        yield Text(f"{indent}│ {short(line)}", style="dim")
    yield Text(f"{indent}{finding.cause}.")
    yield Text(f"{indent}{finding.cure}.", style="bold")
    yield Text(f"{indent}known problem {finding.rule}; more in {finding.link}", style="dim")


def show_stand_ins(members: Iterable[Member], out: Console) -> None:
    """Say which of the hosts' files are not the vendor's own: nobody may take a lab for the real thing."""
    files = dict.fromkeys(file for member in members for file in member.stand_ins)
    if files:
        out.print(Text(stand_ins_line(files), style="magenta"))


def local_time(at: datetime) -> str:
    """A moment in the operator's own time: ``2026-11-21 10:04``."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
