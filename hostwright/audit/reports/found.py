"""Show the software of hosts without a release record, as a table for each group of equal hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hostwright.audit.fleetaudit import HostAudit
from hostwright.audit.found.groups import FoundGroup, found_groups
from hostwright.audit.found.reading import CHECK
from hostwright.common.text import printable, short
from hostwright.inventory.patterns import fold, headed

PLACES = 8  #: maximum number of toolkits, libraries and environments to list per layer (our choice)
#: maximum number of packages to list in home directories (our choice). The option ``--details`` lists all packages.
IN_HOMES = 6


def show_found(hosts: tuple[HostAudit, ...]) -> Iterator[RenderableType]:
    """Yield the software of the largest group of equal hosts, then the differences of other groups from that group."""
    largest = ""
    for group in found_groups(hosts):
        head, below = headed(group.names)
        title = Text.assemble("\n", (printable(head), "bold blue"), "  set up by hand")
        title.append(f", same as {largest} except for" if largest else "", style="yellow")
        yield title
        if below:
            yield Text(f"  {printable(below)}", style="dim")
        yield _table(group, group.differs if largest else tuple(group.layers))
        yield from _remarks(group)
        largest = largest or printable(head)


def _table(group: FoundGroup, shown: Iterable[str]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for layer in shown:
        table.add_row(Text(f"  {layer}", style="cyan"), Text("\n".join(_lines(group.layers.get(layer, ())))))
    if group.homes:
        table.add_row(Text("  in homes", style="cyan"), Text(_in_homes(group), style="dim"))
    return table


def _lines(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    plain = [f"{name} {value}" for name, value in pairs if not name.startswith("/")]
    places = [f"{value}, in {name}" for name, value in pairs if name.startswith("/")]
    if not plain and not places:
        yield "none"
    if plain:
        yield short(", ".join(plain))
    yield from map(short, places[:PLACES])
    if len(places) > PLACES:
        yield f"and {len(places) - PLACES} more (--details lists them)"


def _in_homes(group: FoundGroup) -> str:
    found = Counter(one.have for readings in group.homes.values() for one in readings)
    parts = [f"{short(have)}{f' ×{times}' if times > 1 else ''}" for have, times in found.most_common(IN_HOMES)]
    more = f" and {len(found) - IN_HOMES} more" if len(found) > IN_HOMES else ""
    return f"{'; '.join(parts)}{more} (--details lists the paths)"


def _remarks(group: FoundGroup) -> Iterator[Text]:
    cut: dict[str, list[str]] = {}
    for host in group.hosts:
        for one in host.not_checked:
            if one.check == CHECK:
                cut.setdefault(one.reason, []).append(host.host)
    for reason, names in cut.items():
        yield Text(f"  {short(reason)}: {fold(names)}", style="yellow")
