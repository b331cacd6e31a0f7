"""``invoke power``: a host's power through its BMC, whatever state its operating system is in."""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from hostwright.apply.disturb import occupied
from hostwright.apply.events import HostEnded
from hostwright.apply.rollout.rollout import Results, on_each, result_of
from hostwright.cli import console
from hostwright.cli.call import AS_DESIRED, FAILED, Call, Connections
from hostwright.cli.recording import Recording, recorded
from hostwright.cli.showing import errors_json, show_errors
from hostwright.common.errors import HostError, InputError, Locked, Mistakes, Refused, Unreachable
from hostwright.common.nearest import suggestion
from hostwright.common.operator import operator
from hostwright.fleet import Member
from hostwright.plan import locks
from hostwright.plan.model import Facts
from hostwright.rebuild.bmc import Bmc, Controller, Power, Status, open_bmc
from hostwright.rebuild.bmc.settings import ADDRESS
from hostwright.rebuild.ways.means import read_means
from hostwright.resources import gpu_use

ORDERS = ("on", "off", "cycle", "status")
DISTURBING = ("off", "cycle")
STARTING = ("on", "cycle")
BOOTS = ("network", "media", "disk")
_STYLE = {Power.ON: "green", Power.OFF: "dim"}


@dataclass(frozen=True, slots=True)
class Powered:
    """What came of an order for one host, and what the BMC says afterwards."""

    host: str
    order: str
    before: Power
    status: Status
    notes: tuple[str, ...] = ()
    console: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return {
            "host": self.host,
            "order": self.order,
            "before": self.before,
            **asdict(self.status),
            "console": self.console,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Boot:
    """From what the next start is, and no further one: one of ``BOOTS``, or empty for what the firmware has set."""

    source: str = ""
    image: str = ""  #: the URL of ``media``

    def __str__(self) -> str:
        return f"--boot {self.source}{f' --image {self.image}' if self.image else ''}"


def power(call: Call) -> int:
    """``invoke power ORDER``: power hosts on or off, restart them, or say how they are."""
    order = call["order"]
    if order not in ORDERS:
        raise InputError(f"there is no order {order!r:.40}; {suggestion(str(order), ORDERS)}", "power")
    boot = _boot(call, order)
    fleet = call.fleet()
    by_name = {member.name: member for member in call.members(fleet)}
    bmcs = _bmcs(by_name)
    connections = Connections(call.password() if order in DISTURBING else None)
    force = bool(call["force"])

    def one(name: str) -> Powered:
        notes = bmcs[name].notes
        if order in DISTURBING and not force:
            notes += _allowed(connections, by_name[name], order)
        with open_bmc(bmcs[name]) as controller:
            return _powered(controller, order, notes, boot, force=force)

    with ExitStack() as stack:
        recording = None
        if order != "status":  # who switched a host off is what everybody asks afterwards
            members = tuple(by_name.values())
            recording = stack.enter_context(recorded(call, "power", fleet, members, connections, shown=False))
        results: Results[Powered] = on_each(tuple(by_name), one, stop=connections.close)
        if recording is not None:
            _record(recording, results)
    if call["json"]:
        hosts = [done.to_json() for done in results.values]
        print(json.dumps({"hosts": hosts, "errors": errors_json(results.errors)}))
    else:
        _show(results)
    return FAILED if results.errors else AS_DESIRED


def _boot(call: Call, order: str) -> Boot:
    """What ``--boot`` and ``--image`` ask for. Raises ``InputError``."""
    found = Boot(call.options.get("boot") or "", call.options.get("image") or "")
    if found.source and found.source not in BOOTS:
        raise InputError(f"found {found.source!r:.40}, expected one of {', '.join(BOOTS)}", "--boot")
    if found.source and order not in STARTING:
        raise InputError(f"is for {' and '.join(STARTING)}, which start the host: found {order}", "--boot")
    if bool(found.image) != (found.source == "media"):
        raise InputError("--boot media needs --image URL, and nothing else takes one", "--image")
    return found


def _bmcs(members: dict[str, Member]) -> dict[str, Bmc]:
    """Every host's BMC. Raises ``InputErrors`` that name those without, before anything is done to any host."""
    mistakes, found = Mistakes(), dict[str, Bmc]()
    for name, member in members.items():
        with mistakes:
            bmc = read_means(member.host).bmc
            if bmc is None:
                raise InputError(f"{name} has no BMC in the inventory: set {ADDRESS}", "--hosts")
            found[name] = bmc
    mistakes.refuse()
    return found


def _record(recording: Recording, results: Results[Powered]) -> None:
    """What became of each host, for the journal."""
    for done in results.values:
        same = done.before == done.status.power and done.order != "cycle"
        recording.emit(HostEnded(done.host, "as desired" if same else "changed"))
    for error in results.errors:
        recording.emit(HostEnded(error.host, result_of(error), error.sentence))
    recording.journal.end(FAILED if results.errors else AS_DESIRED)


def _powered(controller: Controller, order: str, notes: tuple[str, ...], boot: Boot, *, force: bool) -> Powered:
    """Carry an order out; ``force`` cuts the power without asking the operating system first."""
    before = controller.power()
    if boot.source and order == "on" and before is Power.ON:
        sentence = f"it is on already, and would boot so at some later start: say `invoke power cycle {boot}`"
        raise Refused(controller.bmc.host, sentence)
    match boot.source:
        case "disk":
            controller.boot_from_disk()
        case "network":
            controller.boot_once("network")
            notes += ("it boots once from the network",)
        case "media":
            controller.boot_once("media", image_url=boot.image)
            notes += (f"it boots once from {boot.image}",)
            notes += ("the image stays in the drive: invoke power cycle --boot disk takes it out",)
    try:
        _carry_out(controller, order, force=force)
    except BaseException:
        if boot.source:
            with suppress(HostError):  # or a later start would find it
                controller.boot_from_disk()
        raise
    if order == "on" and before is Power.ON:
        notes += ("it was on already, says its BMC; if the host does not answer: invoke power cycle",)
    return Powered(controller.bmc.host, order, before, controller.status(), notes, controller.console_hint)


def _carry_out(controller: Controller, order: str, *, force: bool) -> None:
    if order == "on":
        controller.turn_on()
    elif order == "off":
        controller.turn_off(gracefully=not force)
    elif order == "cycle":
        controller.cycle()


def _allowed(connections: Connections, member: Member, order: str) -> tuple[str, ...]:
    """Look on the host whether an order would disturb anybody; notes for the operator.

    Raises ``Refused`` when it would, or when a host that answers cannot be asked. A host that does not answer is not
    protected by what nobody can read.
    """
    try:
        with connections.connect(member) as shell:
            facts = occupied.look(shell)
    except Unreachable as error:
        if error.passing:
            return (f"who uses it was not looked at, for it does not answer: {error.sentence}",)
        raise _unseen(member, error, order) from error
    except HostError as error:
        raise _unseen(member, error, order) from error
    refuse(member.name, facts, order, datetime.now(UTC))
    return ()


def _unseen(member: Member, error: HostError, order: str) -> Refused:
    sentence = f"nobody can tell whether it is in use: {error.sentence}. To {_words(order)} it nevertheless: --force"
    return Refused(member.name, sentence)


def refuse(host: str, facts: Facts, order: str, now: datetime) -> None:
    """Raise ``Locked`` or ``Refused`` where somebody's lock, a run or work on a GPU forbids an order for a host."""
    forbidden = locks.forbids(locks.operator_lock(facts), operator(), now)
    if forbidden:
        raise Locked(host, forbidden)
    run = locks.living(facts, locks.holder("power", host, now))
    if run is not None:
        raise Locked(host, f"{locks.held_by(run)}; or --force")
    left = occupied.left_at_work(facts)
    if left:
        raise Refused(host, f"{left}: wait until that has ended, or say --force to {_words(order)} it")
    users = gpu_use.users(facts)
    if users:
        named = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
        raise Refused(
            host, f"the GPU is in use by {named}: wait until that has ended, or say --force to {_words(order)} it"
        )


def _words(order: str) -> str:
    return "restart" if order == "cycle" else "power off"


def _show(results: Results[Powered]) -> None:
    if results.values:
        out = console.make_console()
        out.print(_table(results.values))
        for done in results.values:
            hints = (f"console: {done.console}",) if done.console and done.status.power is not Power.ON else ()
            for note in (*done.notes, *hints):
                out.print(Text(console.printable(f"{done.host}: {note}"), style="yellow"))
    show_errors(results.errors)


def _table(rows: tuple[Powered, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("host", "power", "before", "health", "model", "serial", "BIOS", "next boot", "media"):
        table.add_column(column, overflow="fold")
    for row in rows:
        said = row.status
        model = f"{said.manufacturer} {said.model}".strip()
        cells = (row.before.value, said.health, model, said.serial, said.bios, said.boot_override)
        table.add_row(
            row.host,
            Text(said.power.value, style=_STYLE.get(said.power, "yellow")),
            *(Text(console.printable(cell) or "–") for cell in cells),
            Text(console.printable(", ".join(said.media)) or "–"),
        )
    return table
