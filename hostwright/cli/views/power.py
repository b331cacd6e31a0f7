"""What came of orders to BMCs, and what these say of their hosts."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from hostwright.apply.rollout.rollout import Results
from hostwright.cli import console
from hostwright.cli.door import advice
from hostwright.cli.views.shared import errors_json, print_document, show_errors
from hostwright.common.text import printable
from hostwright.rebuild.bmc import Power
from hostwright.rebuild.orders import Powered

_STYLE = {Power.ON: "green", Power.OFF: "dim"}


def show_powered(results: Results[Powered], *, as_json: bool) -> None:
    """What came of each host."""
    if as_json:
        hosts = [done.to_json() for done in results.values]
        print_document("power", {"hosts": hosts, "errors": errors_json(results.errors)})
        return
    if results.values:
        out = console.make_console()
        out.print(_table(results.values))
        for done in results.values:
            hints = (f"console: {done.console}",) if done.console and done.status.power is not Power.ON else ()
            for note in (*done.notes, *hints):
                out.print(Text(printable(advice.of_host(f"{done.host}: {note}", done.host)), style="yellow"))
    show_errors(results.errors)


def _table(rows: tuple[Powered, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("host", "power", "before", "health", "model", "serial", "BIOS", "next boot", "media"):
        table.add_column(column, overflow="fold")
    for row in rows:
        status = row.status
        model = f"{status.manufacturer} {status.model}".strip()
        cells = (row.before.value, status.health, model, status.serial, status.bios, status.boot_override)
        table.add_row(
            row.host,
            Text(status.power.value, style=_STYLE.get(status.power, "yellow")),
            *(Text(printable(cell) or "–") for cell in cells),
            Text(printable(", ".join(status.media)) or "–"),
        )
    return table
