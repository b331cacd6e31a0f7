"""Prints the stacks that the verb ``adopt`` wrote, and the recommended commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group
from rich.text import Text

from hostwright.audit.adopting import AdoptedStack, Adoption
from hostwright.cli import console
from hostwright.cli.console import Hanging
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_next
from hostwright.common.command import Command
from hostwright.common.text import count, printable, short
from hostwright.inventory.patterns import fold, headed
from hostwright.plan.targets import Targets


def show_adoption(adoption: Adoption, targets: Targets, *, as_json: bool) -> None:
    """Print each written stack: its hosts, its file, the remaining differences, and the command that plans with this
    stack.
    """
    if as_json:
        print_document("adopted", adoption_json(adoption))
        return
    out = console.make_console()
    for one in adoption.stacks:
        out.print(Group(*_lines(one)))
    if adoption.provisioned:
        hosts = fold([host for host, _ in adoption.provisioned])
        out.print(Hanging(f"{printable(hosts)}: already provisioned; nothing to adopt", style="dim"))
    show_errors(adoption.errors)
    for one in adoption.stacks:
        show_next(out, Command("plan", var=f"stack={one.stack}"), one.hosts, targets)


def adoption_json(adoption: Adoption) -> dict[str, Any]:
    """Return the stacks that ``adopt`` wrote as JSON values."""
    return {
        "stacks": [
            {
                "stack": one.stack,
                "extends": one.extends,
                "file": str(one.file) if one.file else None,
                "text": one.text,
                "hosts": list(one.hosts),
                "left_out": dict(one.left_out),
                "notes": list(one.notes),
                "misfits": [misfit.sentence for misfit in one.misfits],
            }
            for one in adoption.stacks
        ],
        "provisioned": [{"host": host, "stack": stack} for host, stack in adoption.provisioned],
        "errors": errors_json(adoption.errors),
    }


def _lines(one: AdoptedStack) -> Iterator[Text]:
    head, below = headed(one.hosts)
    yield Hanging.assemble((printable(head), "bold"), f"  {one.stack}")
    if below:
        yield Hanging(f"  {printable(below)}", style="dim")
    if one.file:
        yield Hanging(f"  {printable(str(one.file))}: extends {one.extends}", style="green")
    else:
        yield Hanging("  no differences; no file was written", style="green")
    for role, reason in one.left_out:
        yield Hanging.assemble(("  left out  ", "yellow"), (f"{role}  ", "cyan"), short(reason))
    yield from (Hanging(f"  note  {short(note)}", style="yellow") for note in one.notes)
    yield from (Hanging(f"  refused  {short(misfit.sentence)} [{misfit.rule}]", style="red") for misfit in one.misfits)
    yield Hanging(f"  to keep it, set `stack: {one.stack}` for {count(len(one.hosts), 'host')} in the inventory")
    yield Text()
