"""``invoke power``: a host's power through its BMC, whatever state its operating system is in."""

from __future__ import annotations

from hostwright.cli.asking import agree, refuse_unasked
from hostwright.cli.exits import shown
from hostwright.cli.opening import ask_password, open_fleet, targets_of
from hostwright.cli.views.power import show_powered
from hostwright.cli.views.progress import run_audience
from hostwright.common.request import Request
from hostwright.inventory.patterns import counted
from hostwright.rebuild.orders import DISTURBING, Boot, Order, read_bmcs


def power(request: Request, order: str, *, boot: str = "", image: str = "") -> int:
    """``invoke power ORDER``: power hosts on or off, restart them, or show their state."""
    wanted = Order(order, Boot(boot, image), request.force)
    wanted.check()
    fleet = open_fleet(request)
    targets = targets_of(fleet, request, outside=True)
    password = None
    if order in DISTURBING:
        what = f"`power {order}` ends all that runs on hosts"
        refuse_unasked(what, yes=request.yes, as_json=request.json)
        read_bmcs(targets)  # mistakes are reported before anybody types a password
        password = ask_password(request)
        done = "powers off" if order == "off" else "power-cycles"
        agree(
            what,
            [f"{done} {counted(target.name for target in targets)}"],
            len(targets),
            yes=request.yes,
            as_json=request.json,
        )
    ended = shown(
        lambda: fleet.power(targets, wanted, password=password, audience=run_audience(request)),
        lambda ended: show_powered(ended.results, as_json=request.json),
    )
    return ended.status
