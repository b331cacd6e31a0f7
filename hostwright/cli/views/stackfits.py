"""Prints which stacks fit which hosts, best stack first. Hosts with equal results are printed together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.cli import console
from hostwright.cli.console import Hanging
from hostwright.cli.views.shared import errors_json, print_document, show_errors
from hostwright.common.errors import HostError
from hostwright.common.text import printable
from hostwright.inventory.patterns import fold
from hostwright.plan.stacks.fits import HostFits, StackFit
from hostwright.stack.store.artifacts import stand_ins_line


def show_fits(found: Sequence[HostFits], errors: tuple[HostError, ...], *, as_json: bool) -> None:
    """Print the stacks that fit each host in ``found``, then the errors of hosts that could not be probed."""
    if as_json:
        print_document("stackfits", {"hosts": [fits_json(one) for one in found], "errors": errors_json(errors)})
        return
    out = console.make_console()
    alike: dict[tuple[StackFit, ...], list[HostFits]] = {}
    for one in found:
        alike.setdefault(one.stacks, []).append(one)
    for same in alike.values():
        out.print(fits_view(same))
    show_errors(errors)


def fits_json(one: HostFits) -> dict[str, Any]:
    """Return the stacks of one host, with the reasons why they do or do not fit, as JSON values."""
    return {
        "host": one.host,
        "distribution": f"{one.facts.distribution} {one.facts.version}",
        "kernel": one.facts.kernel or "",
        "stored": one.stored,
        "stacks": [
            {
                "stack": fit.stack,
                "fits": fit.fits,
                "misfits": [
                    {"rule": misfit.rule, "sentence": misfit.sentence, "source": misfit.source, "works": misfit.nearest}
                    for misfit in fit.misfits
                ],
                "aged": [one.sentence for one in fit.aged],
                "lifetimes": list(fit.lifetimes),
                "stand_ins": list(fit.stand_ins),
            }
            for fit in one.stacks
        ],
    }


def fits_view(same: Sequence[HostFits]) -> RenderableType:
    """Return the stacks for a group of hosts with equal results (``same``) as text."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for fit in same[0].stacks:
        name = Text(f"  {printable(fit.stack)}", style="green" if fit.fits else "dim")
        for line in _lines(fit):
            table.add_row(name, line)
            name = Text()
    systems = dict.fromkeys(f"{one.facts.distribution} {one.facts.version}, kernel {one.facts.kernel}" for one in same)
    head = Hanging.assemble((fold([one.host for one in same]), "bold"), f"  {printable('; '.join(systems))}")
    stored = min((one.stored for one in same if one.stored), default="")
    note = [Hanging(f"  from stored audits, the oldest of {stored}", style="dim")] if stored else []
    return Group(head, *note, table, Text())


def _lines(fit: StackFit) -> Iterator[Text]:
    if fit.fits:
        yield Hanging(printable("; ".join(("fits", *fit.lifetimes))), style="green")
        yield from (Hanging(printable(one.sentence), style="yellow") for one in fit.aged)
        if fit.stand_ins:
            yield Hanging(printable(stand_ins_line(fit.stand_ins)), style="magenta")
        return
    for misfit in fit.misfits:
        yield Hanging(printable(f"{misfit.sentence} [{misfit.rule}]"), style="dim")
