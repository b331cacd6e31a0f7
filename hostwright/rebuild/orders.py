"""Command ``power``: orders to the BMCs of hosts (on, off, cycle, status), refused if they would disturb work."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from hostwright.apply.disturb import usage
from hostwright.apply.events import HostEnded
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Interrupted, Results, on_each, result_of
from hostwright.apply.run import Run, RunResults
from hostwright.common.command import Command
from hostwright.common.errors import (
    AS_DESIRED,
    FAILED,
    INTERRUPTED,
    HostError,
    InputError,
    Locked,
    Mistakes,
    Refused,
    Unreachable,
)
from hostwright.common.input.nearest import suggestion
from hostwright.common.operator import operator
from hostwright.plan.host import locks
from hostwright.plan.host.occupancy import AtWork
from hostwright.plan.model import Facts
from hostwright.plan.targets import TargetHost, Targets
from hostwright.rebuild.bmc import Bmc, Controller, Power, Status, open_bmc
from hostwright.rebuild.bmc.settings import ADDRESS
from hostwright.rebuild.ways.means import read_means

ORDERS = ("on", "off", "cycle", "status")
DISTURBING = ("off", "cycle")
STARTING = ("on", "cycle")
BOOTS = ("network", "media", "disk")
LEFT_ORDERED = (
    f"interrupted. BMCs still carry out the orders sent to them: {Command('power', 'status')} shows the result"
)
LEADS_ON = f"; {Command('runs.show', run='{run}')} shows what was done"


@dataclass(frozen=True, slots=True)
class Powered:
    """Result of the command ``power`` for one host."""

    host: str
    order: str
    before: Power
    status: Status  #: status that the BMC reports after the order
    notes: tuple[str, ...] = ()
    console: str = ""  #: hint for the operator on how to open the host's console

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
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
    """Boot source for a host's next start only: one of ``BOOTS``; empty for the firmware's setting."""

    source: str = ""
    image: str = ""  #: URL of the image for the source ``media``

    def __str__(self) -> str:
        return f"--boot {self.source}{f' --image {self.image}' if self.image else ''}"


@dataclass(frozen=True, slots=True)
class Order:
    """An order to a host's BMC, one of ``ORDERS``, with the boot source of the next start.

    With ``force``, locks and users are ignored, and ``off`` does not shut the system down first.
    """

    name: str
    boot: Boot = Boot()
    force: bool = False

    def check(self) -> None:
        """Raise ``InputError`` for an unknown order, or an invalid combination of order, boot source and image."""
        if self.name not in ORDERS:
            raise InputError(f"unknown order {self.name!r:.40}; {suggestion(self.name, ORDERS)}", "power")
        if self.boot.source and self.boot.source not in BOOTS:
            raise InputError(f"found {self.boot.source!r:.40}, expected one of {', '.join(BOOTS)}", "--boot")
        if self.boot.source and self.name not in STARTING:
            raise InputError(
                f"applies only to {' and '.join(STARTING)}, which start the host; found {self.name}", "--boot"
            )
        if bool(self.boot.image) != (self.boot.source == "media"):
            raise InputError(
                "--boot media needs --image URL, and --image needs --boot media; give both or neither", "--image"
            )


def power(run: Run, order: Order) -> RunResults[Powered]:
    """Carry out ``order`` on each host of ``run``. The journal records all orders except ``status``."""
    order.check()
    by_name, bmcs = run.targets.by_name, read_bmcs(run.targets)

    def power(name: str) -> Powered:
        notes = bmcs[name].notes
        if order.name in DISTURBING and by_name[name].host.local:
            raise Refused(name, f"Hostwright runs on this host: `power {order.name}` would end this run")
        if order.name in DISTURBING and not order.force:
            ends = _allowed(run.connections, by_name[name], order.name)
            for note in ends:  # These warnings must appear before the host's power is switched; results appear later.
                run.view.warn(f"{name}: {note}")
            notes += ends
        with open_bmc(bmcs[name]) as controller:
            return _powered(controller, order, notes)

    own = {"order": order.name, "boot": order.boot.source, "image": order.boot.image}
    recorded = order.name != "status"
    with run.begun(LEFT_ORDERED, LEADS_ON, own, shown=False) if recorded else nullcontext():
        try:
            results: Results[Powered] = on_each(tuple(by_name), power, stop=run.connections.close)
        except Interrupted as stop:
            stop.ended = RunResults(run.record, stop.results, INTERRUPTED)
            raise
        for done in results.values:
            same = done.before == done.status.power and done.order != "cycle"
            run.emit(HostEnded(done.host, "as desired" if same else "changed"))
        for error in results.errors:
            run.emit(HostEnded(error.host, result_of(error), error.sentence))
        return run.end(results, FAILED if results.errors else AS_DESIRED)


def read_bmcs(targets: Targets) -> dict[str, Bmc]:
    """Return host → settings of its BMC. Raises ``InputErrors`` for hosts without a BMC or with invalid settings."""
    mistakes, bmcs = Mistakes(), dict[str, Bmc]()
    for name, target in targets.by_name.items():
        with mistakes:
            bmc = read_means(target.host).bmc
            if bmc is None:
                raise InputError(f"{name} has no BMC in the inventory: set {ADDRESS}", "--hosts")
            bmcs[name] = bmc
    mistakes.refuse()
    return bmcs


def _powered(controller: Controller, order: Order, notes: tuple[str, ...]) -> Powered:
    before, boot = controller.power(), order.boot
    if boot.source and order.name == "on" and before is Power.ON:
        cycle = Command("power", "cycle", boot=boot.source, image=boot.image)
        sentence = f"the host is already on, so the boot order would apply only to a later start; run {cycle}"
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
            notes += (f"the image stays in the drive: {Command('power', 'cycle', boot='disk')} removes it",)
    try:
        _apply(controller, order)
    except BaseException:
        if boot.source:
            with suppress(HostError):  # A later start must not use the boot source of this failed order.
                controller.boot_from_disk()
        raise
    if order.name == "on" and before is Power.ON:
        notes += (f"its BMC reports that it was already on; if the host does not answer: {Command('power', 'cycle')}",)
    return Powered(controller.bmc.host, order.name, before, controller.status(), notes, controller.console_hint)


def _apply(controller: Controller, order: Order) -> None:
    match order.name:
        case "on":
            controller.turn_on()
        case "off":
            controller.turn_off(gracefully=not order.force)
        case "cycle":
            controller.cycle()


def _allowed(connections: Connections, target: TargetHost, order: str) -> tuple[str, ...]:
    """Return notes for the operator about ``order``. A host that does not answer is never refused.

    Raises ``Refused`` if ``order`` would disturb work, or if the host answers but cannot be checked.
    """
    try:
        with connections.connect(target) as shell:
            facts = usage.probe_usage(shell, target.occupancy)
    except Unreachable as error:
        if error.passing:
            return (f"its users were not checked, because it does not answer: {error.sentence}",)
        raise _unseen(target, error, order) from error
    except HostError as error:
        raise _unseen(target, error, order) from error
    boots = order == "cycle"
    refuse(target.name, facts, target.occupancy.at_work(facts, boots=boots), order, datetime.now(UTC))
    return target.occupancy.returning(facts) if boots else ()


def _unseen(target: TargetHost, error: HostError, order: str) -> Refused:
    sentence = f"cannot check whether the host is in use: {error.sentence}; to {_words(order)} it anyway, pass --force"
    return Refused(target.name, sentence)


def refuse(host: str, facts: Facts, at_work: AtWork, order: str, now: datetime) -> None:
    """Raise ``Locked`` or ``Refused`` if ``order`` must not be sent to ``host`` at the time ``now``.

    The reason is a lock of an operator or a run, or work on the host.
    """
    forbidden = locks.forbids(locks.operator_lock(facts), operator(), now)
    if forbidden:
        raise Locked(host, forbidden)
    run = locks.living(facts, locks.holder("power", host, now))
    if run is not None:
        raise Locked(host, f"{locks.held_by(run)}, or pass --force")
    left = usage.jobs_left(facts)
    if left:
        raise Refused(host, f"{left}; wait until this work has ended, or pass --force to {_words(order)} the host")
    users = at_work.everyone
    if users:
        named = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
        what = "the GPU" if not at_work.others else "the host"
        raise Refused(
            host,
            f"{what} is in use by {named}; wait until this work has ended, or pass --force to {_words(order)} the host",
        )


def _words(order: str) -> str:
    return "restart" if order == "cycle" else "power off"
