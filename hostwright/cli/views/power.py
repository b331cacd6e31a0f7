"""Prints the results of commands to BMCs, and the power states that BMCs report."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hostwright.apply.rollout.rollout import Results, result_of
from hostwright.cli import console
from hostwright.cli.shell import advice
from hostwright.cli.views.shared import errors_json, print_document, show_errors, show_sums
from hostwright.common.errors import HostError
from hostwright.common.text import count, printable
from hostwright.rebuild.bmc import BmcError, Power
from hostwright.rebuild.orders import Powered

TITLES = ("host", "power", "before", "health", "model", "serial", "BIOS", "next boot", "media")
MOST_CONSOLES = 5  #: maximum number of hosts for which the output describes console access
_STYLE = {Power.ON: "green", Power.OFF: "dim"}


def show_powered(results: Results[Powered], *, as_json: bool) -> None:
    """Print the result of the verb ``power`` for each host, and the totals."""
    if as_json:
        hosts = [done.to_json() for done in results.values]
        print_document("power", {"hosts": hosts, "errors": errors_json(results.errors)})
        return
    out = console.make_console()
    if results.values:
        for line in console.in_columns(TITLES, [_cells(done) for done in results.values], out.width):
            out.print(line)
        for done in results.values:
            for note in done.notes:
                out.print(Text(printable(advice.of_host(f"{done.host}: {note}", done.host)), style="yellow"))
        _show_consoles(out, [done for done in results.values if _needs_console(done)])
    show_errors(results.errors)
    show_sums(out, [*(done.status.power.value for done in results.values), *map(_word, results.errors)])


def _word(error: HostError) -> str:
    return "BMC not reached" if isinstance(error, BmcError) else result_of(error)


def _needs_console(done: Powered) -> bool:
    return bool(done.console) and done.status.power is not Power.ON and done.order != "off"


def _show_consoles(out: Console, of: Sequence[Powered]) -> None:
    for done in of[:MOST_CONSOLES]:
        out.print(Text(printable(f"console of {done.host}: {done.console}"), style="cyan"), soft_wrap=True)
    if more := of[MOST_CONSOLES:]:
        out.print(Text(f"and {count(len(more), 'more console')}: --json has all of them", style="dim"))


def _cells(row: Powered) -> list[Text]:
    status = row.status
    plain = (
        "" if row.order == "status" else row.before.value,
        status.health,
        f"{status.manufacturer} {status.model}".strip(),
        status.serial,
        status.bios,
        status.boot_override,
        ", ".join(status.media),
    )
    power = Text(status.power.value, style=_STYLE.get(status.power, "yellow"))
    return [Text(row.host), power, *(Text(printable(text)) for text in plain)]
