"""``invoke power``: a host's power through its BMC, whatever state its operating system is in."""

from __future__ import annotations

from hostwright.cli.arguments import ConnectionOptions, Selection
from hostwright.cli.asking import agree, refuse_unasked
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.power import show_powered
from hostwright.cli.views.progress import run_audience
from hostwright.inventory.patterns import counted
from hostwright.rebuild.orders import DISTURBING, Boot, Order, read_bmcs


def power(
    order: str,
    selection: Selection,
    connection: ConnectionOptions,
    *,
    force: bool = False,
    yes: bool = False,
    boot: str = "",
    image: str = "",
    as_json: bool = False,
) -> int:
    """``invoke power ORDER``: power hosts on or off, restart them, or show their state."""
    wanted = Order(order, Boot(boot, image), force)
    wanted.check()
    fleet = open_fleet(selection, connection, force=force)
    targets = targets_of(fleet, selection, outside=True)
    password = None
    if order in DISTURBING:
        what = f"`power {order}` ends all that runs on hosts"
        refuse_unasked(what, yes=yes, as_json=as_json)
        read_bmcs(targets)  # mistakes are reported before anybody types a password
        password = ask_password(connection)
        done = "powers off" if order == "off" else "power-cycles"
        agree(what, [f"{done} {counted(target.name for target in targets)}"], len(targets), yes=yes, as_json=as_json)
    ended = shown(
        lambda: fleet.power(targets, wanted, password=password, audience=run_audience(as_json=as_json)),
        lambda ended: show_powered(ended.results, as_json=as_json),
    )
    return ended.status
