"""The run as it happens: a table of hosts and layers that redraws itself, or one plain line per event."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.jobs.scripting import Progress
from hostwright.apply.rollout.silence import CONTACT
from hostwright.common.text import count, printable
from hostwright.plan.roles.layers import one_order

MARKS = {"waiting": ("·", "dim"), "ok": ("✓", "green"), "failed": ("✗", "red"), "as desired": ("=", "green dim")}
REFRESH_PER_SECOND = 4
PLAINLY = ("failed", "unreachable", "stopped", "untouched")  #: results that the last probe does not show


class Plain:
    """One line per event, for logs and pipes. Usable as ``with Plain(...) as view: view(event)`` from any thread."""

    def __init__(self, console: Console):
        self._console = console
        self._lock = threading.Lock()
        self._begun = time.monotonic()
        self._last_lines: dict[str, str] = {}  # the last line of each host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Nothing to undo."""

    def __call__(self, event: Event) -> None:
        """Print an event."""
        line = _line(event)
        with self._lock:
            if line and self._last_lines.get(event.host) != line:  # two probes with the same answer are one line
                self._last_lines[event.host] = line
                self._console.print(Text(f"{time.monotonic() - self._begun:7.1f} s  {event.host}  {printable(line)}"))


def _line(event: Event) -> str:
    line = ""
    match event:
        case events.Observed(plan=plan):
            names = ", ".join(role.role for role in plan.roles)
            line = f"{count(len(plan.changes), 'change')}: {names}" if names else "as desired"
        case events.RoleStarted(role=role, steps=steps):
            line = f"{role}: {count(steps, 'step')}"
        case events.Attached(role=role, job=job, operator=operator):
            line = f"{role}: re-attaching to {job}, which {operator or 'an earlier run'} left running"
        case events.Retrying() | events.Silent() | events.Rebooted() | events.Phase():
            line = sentence(event)
        case events.Waiting(what=what) if what not in CONTACT:  # those two are over in a moment, or named as silent
            line = sentence(event)
        case events.RoleProgress(role=role, progress=progress) if progress.retry is not None:
            line = f"{role}: {retry_sentence(progress)}"
        case events.HostEnded(result=result, sentence=why) if result in PLAINLY:
            line = f"{result}: {why}" if why else result
        case events.RoleFinished(role=role, result=result):
            line = f"{role}: {'ok' if result.status == 0 else 'failed'} after {result.duration_s:.1f} s"
        case events.Delivering(role=role, artifact=artifact, done_bytes=done, total_bytes=total) if done >= total:
            line = f"{role}: {artifact} is on the host ({total / 1e6:.0f} MB)"
        case events.Note(text=text):
            line = text
    return line


def sentence(event: Event) -> str:
    """What the operator should read of a host that waits, retries or is silent."""
    match event:
        case events.Waiting(what=what):
            return f"waiting for {what}"
        case events.Silent(what=what, seconds=seconds):
            return f"no sign of life for {seconds:.0f} s while waiting for {what}; the others continue"
        case events.Retrying(what=what, number=number, wait_s=wait_s, reason=reason):
            return f"{what}: {reason}; retrying in {wait_s:.1f} s (try {number + 1})"
        case events.Rebooted(reason=reason, seconds=seconds):
            return f"back {seconds:.0f} s after the reboot ({reason})"
        case events.Phase(phase=phase, seconds=seconds):
            return f"{phase}: {seconds:.1f} s"
        case _:
            return ""


def retry_sentence(progress: Progress) -> str:
    """What a step on the host waits for before it is run again."""
    retry = progress.retry
    return (
        f"{progress.what}: {retry.reason}; retrying in {retry.wait_s:.0f} s (try {retry.number + 1})" if retry else ""
    )


@dataclass
class _Row:
    """What the table knows about one host, which has these roles."""

    roles: tuple[str, ...] = ()
    state: dict[str, str] = field(default_factory=dict)
    note: str = ""
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None


class LiveTable:
    """Hosts by layers, redrawn in place: elapsed time, and the last line of what runs."""

    def __init__(self, console: Console, hosts: Mapping[str, Sequence[str]]):
        """``hosts`` are their names and the roles of each."""
        self._roles = one_order(hosts.values())
        self._rows = {host: _Row(tuple(roles)) for host, roles in hosts.items()}
        self._console = console
        self._lock = threading.Lock()
        self._live = Live(get_renderable=self._draw, console=console, refresh_per_second=REFRESH_PER_SECOND)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._live.__exit__(kind, error, tb)

    def __call__(self, event: Event) -> None:
        """Take an event in; the next redraw shows it. What belongs to no single host is printed above the table."""
        if not event.host:
            self._console.print(Text(printable(_line(event)), style="yellow"))
            return
        with self._lock:
            row = self._rows.setdefault(event.host, _Row())
            _note(row, event)

    def _draw(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
        for column in ("host", *self._roles, "time"):
            table.add_column(column, no_wrap=True)
        table.add_column("now", no_wrap=True, overflow="ellipsis", ratio=1)
        with self._lock:
            busy_first = sorted(self._rows.items(), key=lambda item: item[1].ended is not None)
            for host, row in busy_first[: max(1, self._console.height - 3)]:
                seconds = (row.ended or time.monotonic()) - row.begun
                cells = [_cell(row.state.get(role, "waiting" if role in row.roles else "")) for role in self._roles]
                table.add_row(
                    Text(host, style="bold"), *cells, f"{seconds:.0f} s", Text(printable(row.note), style="dim")
                )
        return table


def _cell(state: str) -> Text:
    mark, style = MARKS.get(state, (state, "yellow"))
    return Text(mark, style=style)


def _note(row: _Row, event: Event) -> None:
    """What an event changes in its host's row."""
    match event:
        case events.Observed(plan=plan):
            busy = {role.role for role in plan.roles}
            for role in row.roles:
                if role not in busy and row.state.get(role) != "ok":
                    row.state[role] = "as desired"
            row.ended = time.monotonic() if plan.empty else None
            row.note = "as desired" if plan.empty else count(len(plan.changes), "change")
        case events.RoleStarted(role=role, steps=steps):
            row.state[role] = f"0/{steps}"
        case events.Attached(role=role, steps=steps, job=job):
            row.state[role] = f"0/{steps}"
            row.note = f"re-attached to {job}"
        case events.Waiting() | events.Silent() | events.Retrying() | events.Rebooted() | events.Phase():
            row.note = sentence(event)
        case events.HostEnded(result=result, sentence=why):
            row.ended = row.ended or time.monotonic()
            row.note = f"{result}: {why}" if why else result
        case events.RoleProgress(role=role, progress=progress):
            total = row.state.get(role, "").rpartition("/")[2]
            if progress.number is not None and total.isdigit():
                row.state[role] = f"{progress.number + 1}/{total}"
            row.note = f"{role}: {retry_sentence(progress) or progress.last_line or progress.what}"
        case events.RoleFinished(role=role, result=result):
            row.state[role] = "ok" if result.status == 0 else "failed"
        case events.Delivering(role=role, artifact=artifact, done_bytes=done, total_bytes=total):
            row.note = f"{role}: {artifact} {done * 100 // max(total, 1)} %"
        case events.Note(text=text):
            row.note = text
