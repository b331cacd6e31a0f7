"""What verbs list of hosts: one look at each of them, and a row for each thing that is declared or there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import on_each
from hostwright.cli import console
from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.opening import ask_password, members_of, open_fleet
from hostwright.cli.views.shared import errors_json, show_errors
from hostwright.common.text import printable
from hostwright.fleet import Member
from hostwright.plan.model import Facts, Probe
from hostwright.plan.observing import ask

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)
else:
    Row = TypeVar("Row")


def show_rows(
    selection: Selection,
    connection: ConnectionOptions,
    probe: Probe,
    rows_of: Callable[[Member, Facts], Iterable[Row]],
    columns: Mapping[str, Callable[[Row], str]],
    *,
    what: str,
    as_json: bool = False,
) -> int:
    """Ask each host once and print its rows in columns, or as JSON under ``what``, such as ``workspaces``."""
    fleet = open_fleet(selection, connection)
    members = members_of(fleet, selection)
    connections = Connections(ask_password(connection))

    def look(name: str) -> tuple[Row, ...]:
        member = members.by_name[name]
        with connections.connect(member) as shell:
            return tuple(rows_of(member, ask(shell, (probe,))))

    results = on_each([member.name for member in members], look, stop=connections.close)
    rows = [row for rows in results.values for row in rows]
    if as_json:
        print(json.dumps({what: [asdict(row) for row in rows], "errors": errors_json(results.errors)}))
        return 1 if results.errors else 0
    out = console.make_console()
    for line in table(rows, columns) if rows else [f"no {what}"]:
        out.print(printable(line), markup=False, highlight=False, soft_wrap=True)
    show_errors(results.errors)
    return 1 if results.errors else 0


def table(rows: Sequence[Row], columns: Mapping[str, Callable[[Row], str]]) -> Iterator[str]:
    """The rows in columns, below their heads; ``-`` where there is nothing.

    >>> list(table([{"n": "lab"}, {"n": ""}], {"name": lambda row: row["n"], "on": lambda row: "gpu01"}))
    ['name  on', 'lab   gpu01', '-     gpu01']
    """
    lines = [tuple(columns), *(tuple(cell(row) or "-" for cell in columns.values()) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines)
