"""State of each host during a run, counts of hosts by state, and the order of hosts in the live table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.cli.live.plain import retry_sentence, sentence

#: result in a ``HostEnded`` event → state of the host in the counts
STANDINGS = {
    "as desired": "done",
    "changed": "done",
    "ran": "done",
    "pending": "reboot pending",
    "failed": "failed",
    "unreachable": "unreachable",
    "stopped": "stopped",
    "locked": "locked",
    "untouched": "untouched",
}
RUNNING, WAITING = "running", "waiting"
BAD = ("failed", "unreachable", "stopped")
#: states of hosts, in the order of their counts
COUNTED = ("done", "reboot pending", *BAD, "locked", RUNNING, WAITING, "untouched")
#: state of a host → sort key in the table, smallest first
FIRST = {**dict.fromkeys(BAD, 0), RUNNING: 1, WAITING: 2, "reboot pending": 3, "locked": 3, "done": 3, "untouched": 4}

MOST_SECONDS_S, MINUTE_S, HOUR_S = 100, 60, 3600


@dataclass
class HostRow:
    """A host in the display of a run: the states of its layers, and its activity. Times are seconds of a monotonic
    clock.

    ``state`` maps each layer to ``as desired``, ``ok``, ``failed``, or the current step (``4/12``).
    """

    name: str
    roles: tuple[str, ...] = ()
    state: dict[str, str] = field(default_factory=dict)
    now: str = ""
    result: str = ""  #: result of the host; empty while work is in progress
    begun_s: float | None = None
    ended_s: float | None = None

    @property
    def standing(self) -> str:
        """State of the host: one of ``COUNTED``."""
        if self.result:
            return STANDINGS[self.result]
        return WAITING if self.begun_s is None else RUNNING

    def seconds(self, now_s: float) -> float | None:
        """Return the seconds since work on the host began, or the duration of ended work; ``None`` before the
        beginning.
        """
        if self.begun_s is None:
            return None
        return (now_s if self.ended_s is None else self.ended_s) - self.begun_s

    def take(self, event: Event, now_s: float) -> None:
        """Update the state of the host with an ``event`` about this host."""
        if isinstance(event, events.HostEnded):
            self.result, self.ended_s = event.result, now_s
            shown = events.SHOWN_RESULTS[event.result]
            self.now = f"{shown}: {event.sentence}" if event.sentence else shown
            return
        if self.begun_s is None:
            self.begun_s = now_s
        self._learn(event)
        self.now = self._told(event) or self.now

    def _learn(self, event: Event) -> None:
        match event:
            case events.Observed(plan=plan):
                busy = {role.role for role in plan.roles}
                for role in self.roles:
                    if role not in busy and self.state.get(role) != "ok":
                        self.state[role] = "as desired"
            case events.RoleStarted(role=role, steps=steps) | events.Attached(role=role, steps=steps):
                self.state[role] = f"0/{steps}"
            case events.RoleProgress(role=role, progress=progress) if progress.number is not None:
                total = self.state.get(role, "").rpartition("/")[2]
                if total.isdigit():
                    self.state[role] = f"{progress.number + 1}/{total}"
            case events.Explained(what=what) if (role := what.partition(":")[0]) in self.roles:
                self.state[role] = "failed"  # ``what`` is the name of a failed check, and begins with the role
            case events.RoleFinished(role=role, result=result):
                self.state[role] = "ok" if result.status == 0 else "failed"

    def _told(self, event: Event) -> str:
        shown = sentence(event)
        match event:
            case events.Observed(plan=plan):
                shown = plan.tally or "as desired"
            case events.RoleStarted(role=role):
                shown = f"{role} {self.state[role]}"
            case events.Attached(job=job):
                shown = f"re-attached to {job}"
            case events.RoleProgress(role=role, progress=progress):
                step = self.state.get(role, "")
                at = f"{role} {step}" if "/" in step else role
                shown = f"{at}: {retry_sentence(progress) or progress.last_line or progress.what}"
            case events.RoleFinished(role=role):
                shown = f"{role}: {self.state[role]}"
            case events.Delivering(role=role, artifact=artifact, done_bytes=done, total_bytes=total, source=source):
                shown = f"{role}: {artifact} {done * 100 // max(total, 1)} % {events.whence(source)}".rstrip()
            case events.Note(text=text):
                shown = text
        return shown


def in_turn(rows: Iterable[HostRow]) -> list[HostRow]:
    """Sort hosts: failed hosts first, by time of failure; then running hosts, by start time; then all others."""
    return sorted(rows, key=lambda row: (FIRST[row.standing], _since(row)))


def _since(row: HostRow) -> float:
    since_s = {RUNNING: row.begun_s, **dict.fromkeys(BAD, row.ended_s)}.get(row.standing)
    return since_s or 0.0


def counts(rows: Iterable[HostRow]) -> list[tuple[str, str]]:
    """Return a pair of text and state for each state with hosts: ``[("40 failed", "failed"), …]``."""
    number = Counter(row.standing for row in rows)
    return [(f"{number[word]} {word}", word) for word in COUNTED if number[word]]


def elapsed(seconds: float) -> str:
    """Format ``seconds`` of a running activity: ``45 s``, ``6 min``, ``1 h 12 min``.

    >>> elapsed(45.2), elapsed(400), elapsed(4321)
    ('45 s', '6 min', '1 h 12 min')
    """
    if seconds < MOST_SECONDS_S:
        return f"{int(seconds)} s"
    if seconds < HOUR_S:
        return f"{int(seconds // MINUTE_S)} min"
    return f"{int(seconds // HOUR_S)} h {int(seconds % HOUR_S // MINUTE_S)} min"
