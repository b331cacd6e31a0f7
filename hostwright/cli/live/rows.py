"""What is known of each host while a run lasts, how hosts are counted, and which of them come first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.cli.live.plain import retry_sentence, sentence

#: results of ``HostEnded`` → how its host is counted
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
#: in the order in which they are counted
COUNTED = ("done", "reboot pending", *BAD, "locked", RUNNING, WAITING, "untouched")
#: which hosts are shown before others
FIRST = {**dict.fromkeys(BAD, 0), RUNNING: 1, WAITING: 2, "reboot pending": 3, "locked": 3, "done": 3, "untouched": 4}

MOST_SECONDS_S, MINUTE_S, HOUR_S = 100, 60, 3600


@dataclass
class HostRow:
    """One host of a run: its layers, what it does now, and since when. Times are seconds of any steady clock.

    ``state`` holds what is known of each layer: ``as desired``, ``ok``, ``failed``, or while it runs the step it is at
    (``4/12``). A host's clock starts with the first event of its own: before that it waits for its turn.
    """

    name: str
    roles: tuple[str, ...] = ()
    state: dict[str, str] = field(default_factory=dict)
    now: str = ""
    result: str = ""  #: how the run ended on it; empty while it lasts
    begun_s: float | None = None
    ended_s: float | None = None

    @property
    def standing(self) -> str:
        """How it is counted: one of ``COUNTED``."""
        if self.result:
            return STANDINGS[self.result]
        return WAITING if self.begun_s is None else RUNNING

    def seconds(self, now_s: float) -> float | None:
        """How long it has been worked on; ``None`` for a host that was never begun."""
        if self.begun_s is None:
            return None
        return (now_s if self.ended_s is None else self.ended_s) - self.begun_s

    def take(self, event: Event, now_s: float) -> None:
        """What an event changes of it."""
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
                self.state[role] = "failed"  # of a check, which says whose it is
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
    """Those in trouble first, in the order in which they ended, then those at work, the slowest first."""
    return sorted(rows, key=lambda row: (FIRST[row.standing], _since(row)))


def _since(row: HostRow) -> float:
    since_s = {RUNNING: row.begun_s, **dict.fromkeys(BAD, row.ended_s)}.get(row.standing)
    return since_s or 0.0


def counts(rows: Iterable[HostRow]) -> list[tuple[str, str]]:
    """``[("40 failed", "failed"), …]``: how many hosts stand where, and the word alone; none that no host does."""
    number = Counter(row.standing for row in rows)
    return [(f"{number[word]} {word}", word) for word in COUNTED if number[word]]


def elapsed(seconds: float) -> str:
    """A time for people who watch: ``45 s``, ``6 min``, ``1 h 12 min``.

    >>> elapsed(45.2), elapsed(400), elapsed(4321)
    ('45 s', '6 min', '1 h 12 min')
    """
    if seconds < MOST_SECONDS_S:
        return f"{int(seconds)} s"
    if seconds < HOUR_S:
        return f"{int(seconds // MINUTE_S)} min"
    return f"{int(seconds // HOUR_S)} h {int(seconds % HOUR_S // MINUTE_S)} min"
