"""Case: the commands of the case ``plan``, with hosts behind a network cable with a long delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from benchmarks.cases import plan
from benchmarks.cases.case import Cost, Table, Wanted
from benchmarks.cases.ours import AUDIT, PLAN, PROBES
from benchmarks.figures.goals import Goal
from benchmarks.figures.statistics import Figures
from benchmarks.measuring.command import Command
from benchmarks.peers.tools import PYINFRA, SSH
from benchmarks.places.desk import Desk, long_cable, round_trip_s, set_up
from benchmarks.places.places import Places

NAME = "latency"
TITLE = "The same, with 25 and 80 ms of added round trip"
ABOUT = """\
One host, with each frame of the controller's cable held back by half of the round trip in each direction. The round
trips from nothing to the plan are the slope of the wall over the added round trip: what is waited for, one after the
other, from the first packet to the last. pyinfra runs once."""
BOUND_S = 300.0
TABLE = Table(memory=False)
SIZES = (1,)
#: estimated total seconds of a tool over all delays in ``DELAYS_S``
COSTS = (
    Cost(SSH, 1, 2, rounds=2), Cost(PROBES, 1, 2.8, rounds=2), Cost(PLAN, 1, 6.3, rounds=2),
    Cost(AUDIT, 1, 9, rounds=2), Cost(PYINFRA, 1, 47, rounds=1),
)  # fmt: skip
REST_S = 10.0
#: name of the variant → additional round-trip time of the network in seconds
DELAYS_S = {"0 ms": 0.0, "25 ms": 0.025, "80 ms": 0.08}


@dataclass(slots=True)
class Line:
    """Virtual network cable of the controller, with its current delay."""

    desk: Desk
    facts: dict[str, str] = field(default_factory=dict)
    _now_s: float = 0.0
    _cable: ExitStack = field(default_factory=ExitStack)

    def be(self, delay_s: float, address: str) -> None:
        """Delay the cable's traffic by ``delay_s`` seconds per round trip, and measure a round trip to ``address``."""
        if delay_s == self._now_s:
            return
        self._cable.close()
        self._now_s = 0.0
        if delay_s:
            self.facts["delayed by"] = self._cable.enter_context(long_cable(self.desk, delay_s))
            measured = f"{1000 * round_trip_s(self.desk, address):.1f} ms for a TCP handshake"
            self.facts.setdefault(f"{1000 * delay_s:g} ms, measured", measured)
        self._now_s = delay_s

    def close(self) -> None:
        """Remove the delay of the cable's traffic."""
        self._cable.close()
        set_up(self.desk.lab)


@dataclass(frozen=True, slots=True)
class Ready:
    """The hosts of the case ``plan``, and the controller's network cable."""

    hosts: plan.Ready
    line: Line


@contextmanager
def setup(places: Places, wanted: Wanted) -> Iterator[Ready]:
    """Set up the case ``plan``, by default with the numbers of hosts of this case."""
    with plan.setup(places, replace(wanted, sizes=wanted.of(SIZES))) as hosts:
        line = Line(hosts.hosts.desk)
        try:
            yield Ready(hosts, line)
        finally:
            line.close()


def check(ready: Ready) -> str:
    """Run the check of the case ``plan``."""
    return plan.check(ready.hosts)


def facts(ready: Ready) -> dict[str, str]:
    """Return the facts of the case ``plan``, the method of the delay, and the measured delays."""
    return {**plan.facts(ready.hosts), **ready.line.facts}


def commands(ready: Ready) -> Sequence[Command]:
    """Return the commands of all measured tools for each delay and number of hosts."""
    return [command for variant in DELAYS_S for size in ready.hosts.sizes for command in under(ready, variant, size)]


def under(ready: Ready, variant: str, size: int) -> list[Command]:
    """Return the commands of all measured tools with the delay ``variant`` and ``size`` hosts."""
    (first,) = ready.hosts.hosts.machines(ready.hosts.names[:1])

    def before() -> None:
        ready.line.be(DELAYS_S[variant], str(first.address))

    return [replace(command, before=before) for command in plan.at(ready.hosts, size, variant)]


def round_trips(found: Figures, contender: str) -> float:
    """Return the number of network round trips for one host: increase of wall time divided by increase of delay."""
    return found.slope(contender, 1, "wall_s", DELAYS_S)


def goals() -> Sequence[Goal]:
    """Return the goal for the number of network round trips of a plan of one host."""
    return (Goal("1 host: round trips from nothing to the plan", 8, lambda found: round_trips(found, PLAN)),)


PLOTTED = (SSH, PROBES, PLAN, AUDIT, PYINFRA)
