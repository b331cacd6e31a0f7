"""Runs for tests of the live views: fleets whose hosts wait, work, or have ended."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console

from hostwright.apply import events
from hostwright.apply.jobs.scripting import Progress
from hostwright.cli.live.table import LiveTable
from hostwright.plan.model import Change, Plan, RolePlan, RoleResult, Step, StepResult

CHANGE = Change("file /etc/x", "other text", "644 root root", (Step("true"),), diff="-old\n+new\n")
LAYERS = ("base", "network", "storage", "monitoring", "tensors", "selfcheck")
HEADINGS = {"network": "net", "tensors": "tf"}


def story(host: str) -> Iterator[events.Event]:
    """Return all events of a host that needs one layer."""
    plan = Plan(host, "tf", (RolePlan("storage", (), (CHANGE,)),))
    result = RoleResult("storage", 0, 1.0, (StepResult(0, "x", 0, 1.0),))
    yield events.Observed(host, plan)
    yield events.Delivering(host, "storage", "storage.deb", 5, 10)
    yield events.Delivering(host, "storage", "storage.deb", 6, 10)
    yield events.Delivering(host, "storage", "storage.deb", 10, 10)
    yield events.RoleStarted(host, "storage", 3)
    yield events.RoleProgress(host, "storage", Progress(1, "packages", "\x1b[1mUnpacking"))
    yield events.Note(host, "rebooting: new module")
    yield events.RoleFinished(host, "storage", result)
    yield events.Observed(host, Plan(host, "tf"))


@dataclass
class Watched:
    """A live table with its clock."""

    hosts: Mapping[str, Sequence[str]]
    now_s: float = 0.0
    table: LiveTable = field(init=False)

    def __post_init__(self) -> None:
        self.table = LiveTable(Console(file=io.StringIO()), self.hosts, HEADINGS, clock=lambda: self.now_s)

    def tell(self, *told: events.Event, at_s: float | None = None) -> Watched:
        """Send events to the table at a given time."""
        self.now_s = self.now_s if at_s is None else at_s
        for event in told:
            self.table(event)
        return self

    def picture(self, width: int, height: int = 24, **how: object) -> list[str]:
        """Return the text on a terminal of that size; with ``color_system`` in ``how``, also the codes of its
        colours."""
        stream = io.StringIO()
        settings = {"color_system": None, "force_terminal": True, "_environ": {}, **how}
        Console(file=stream, width=width, height=height, **settings).print(self.table)  # type: ignore[arg-type]
        return stream.getvalue().splitlines()


def at_work(host: str, line: str = "Unpacking") -> tuple[events.Event, ...]:
    """Return a host in the middle of its second layer."""
    return (
        events.Waiting(host, "a connection"),
        events.Observed(host, Plan(host, "tf", (RolePlan("storage", (), (CHANGE,)),))),
        events.RoleStarted(host, "storage", 12),
        events.RoleProgress(host, "storage", Progress(3, "packages", line)),
    )


def ended(host: str, result: str, why: str = "") -> tuple[events.Event, ...]:
    """Return a host that has ended, with its result."""
    return (events.Waiting(host, "a connection"), events.HostEnded(host, result, why))
