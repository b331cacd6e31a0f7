"""Tables for tasks that list items of hosts, such as workspaces: one query to each host, one row per item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from rich.console import Group

from hostwright.cli.verb import (
    Connections,
    Request,
    Results,
    TargetHost,
    ask,
    ask_password,
    console,
    errors_json,
    on_each,
    open_fleet,
    print_document,
    show_errors,
    shown,
    targets_of,
)
from hostwright.resources import Facts, Probe
from hostwright.roles import HostError, one_line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)
else:
    Row = TypeVar("Row")

_NAMES = 2  #: number of first columns of a table in which no text is replaced by a number
_SHORT = 11  #: maximum number of characters of a text that is never replaced by a number


def show_rows(
    request: Request,
    probe: Probe,
    rows_of: Callable[[TargetHost, Facts], Iterable[Row]],
    columns: Mapping[str, Callable[[Row], str]],
    *,
    what: str,
    trouble: Callable[[Facts], str],
    total: Callable[[Sequence[Row]], str] = lambda _: "",
) -> int:
    """Query each host once with ``probe``, and print the rows in columns, or as JSON under the key ``what``.

    ``trouble`` returns an error if a host's answer is incomplete. ``total`` returns a summary line. The exit status is
    1 if a query failed or was incomplete.
    """
    fleet = open_fleet(request)
    targets = targets_of(fleet, request)
    connections = Connections(ask_password(request))

    def look(name: str) -> tuple[tuple[Row, ...], HostError | None]:
        target = targets.by_name[name]
        with connections.connect(target) as shell:
            facts = ask(shell, (probe,))
        sentence = trouble(facts)
        return tuple(rows_of(target, facts)), HostError(name, sentence) if sentence else None

    def errors_of(results: Results[tuple[tuple[Row, ...], HostError | None]]) -> tuple[HostError, ...]:
        return (*results.errors, *(error for _, error in results.values if error))

    def show(results: Results[tuple[tuple[Row, ...], HostError | None]]) -> None:
        rows = [row for rows, _ in results.values for row in rows]
        if request.json:
            print_document(what, {what: [asdict(row) for row in rows], "errors": errors_json(errors_of(results))})
            return
        out = console.make_console()
        lines = [*table(rows, columns, out.width if out.is_terminal else None)] if rows else []
        if not rows and results.values:  # if no host responded, the rows are unknown
            lines = [f"no {what}" + (" on the hosts that answered" if errors_of(results) else "")]
        if len(rows) > 1 and (sentence := total(rows)):
            lines += ["", sentence]
        for line in lines:
            out.print(Group(console.Hanging(line)))
        show_errors(errors_of(results))

    names = [target.name for target in targets]
    return 1 if errors_of(shown(lambda: on_each(names, look, stop=connections.close), show)) else 0


def table(rows: Sequence[Row], columns: Mapping[str, Callable[[Row], str]], width: int | None = None) -> Iterator[str]:
    """Yield the lines of a table: column heads, then rows, with ``-`` for an empty text.

    If the table is wider than ``width``, numbers replace the longest texts, which follow below the table.

    >>> list(table([{"n": "lab"}, {"n": ""}], {"name": lambda row: row["n"], "on": lambda row: "gpu01"}))
    ['name  on', 'lab   gpu01', '-     gpu01']
    """
    lines = [tuple(columns), *(tuple(one_line(cell(row)) or "-" for cell in columns.values()) for row in rows)]
    limits = _limits(lines, width)
    notes: dict[str, str] = {}
    for line in lines[1:]:
        for text, limit in zip(line, limits, strict=True):
            if len(text) > limit:
                notes.setdefault(text, f"[{len(notes) + 1}]")
    lines = [
        tuple(notes[text] if len(text) > limit else text for text, limit in zip(line, limits, strict=True))
        for line in lines
    ]
    sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(text.ljust(size) for text, size in zip(line, sizes, strict=True)).rstrip()
    if notes:
        yield ""
    yield from (f"{number} {text}" for text, number in notes.items())


def _limits(lines: Sequence[Sequence[str]], width: int | None) -> list[int]:
    """Return the maximum text length of each column, for a table of at most ``width`` characters if possible.

    Longer texts are printed below the table, first texts of the last column, then of the widest other column.
    """
    lengths = [sorted({len(text) for text in column}) for column in zip(*lines, strict=True)]
    last = len(lengths) - 1
    while width is not None and sum(each[-1] for each in lengths) + 2 * last > width:
        long = [n for n in range(_NAMES, last + 1) if lengths[n][-1] > max(_SHORT, len(lines[0][n]))]
        if not long:
            break
        lengths[last if last in long else max(long, key=lambda n: lengths[n][-1])].pop()
    return [each[-1] for each in lengths]
