"""Displays a run as one plain line per event, for logs, pipes and terminals that cannot redraw."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Self

from rich.console import Console
from rich.text import Text

from hostwright.apply import events
from hostwright.apply.events import Event
from hostwright.apply.jobs.scripting import Progress
from hostwright.apply.rollout.silence import CONTACT
from hostwright.cli.shell import advice
from hostwright.common.durations import Clock
from hostwright.common.text import count, one_line, shown_bytes, shown_limit, shown_seconds
from hostwright.inventory.patterns import fold

_CLOCK = Clock()
#: time in seconds for collecting hosts with the same problem into one printed line
GATHER_S = 2.0
#: results that are printed for the event ``HostEnded``, because no earlier event prints them
PLAINLY = ("failed", "unreachable", "stopped", "untouched")


class Plain:
    """Prints a line per event of a run, with the time of day. Any thread may call the object with an event.

    Usage: ``with Plain(...) as view: view(event)``. Lines are never wrapped, because programs also read them. A problem
    of several hosts is printed as one line, at most ``gather_s`` seconds after the problem of the first host.
    """

    def __init__(
        self, console: Console, run: str = "", hosts: int = 0, *, clock: Clock = _CLOCK, gather_s: float = GATHER_S
    ):
        """Without the ID of a run (``run``), the display omits its first line."""
        self._console = console
        self._heading = f"run {run}: {count(hosts, 'host')}" if run else ""
        self._clock = clock
        self._gather_s = gather_s if hosts > 1 else 0.0
        self._lock = threading.Lock()
        self._last_lines: dict[str, str] = {}
        self._sent: set[tuple[str, str]] = set()  # pairs of host and line, for printed events of transfers
        self._troubles: dict[str, list[str]] = {}  # line of a problem → hosts for which this line is not yet printed

    def __enter__(self) -> Self:
        if self._heading:
            self._print(self._heading)
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._print_troubles()

    def __call__(self, event: Event) -> None:
        """Print the line of ``event``, or first collect the hosts with the same problem."""
        line = (self._gather_s and trouble(event)) or event_line(event)
        with self._lock:
            if not line or self._said(event, line):
                return
            self._last_lines[event.host] = line
            if any(event.host in hosts for hosts in self._troubles.values()):
                self._print_troubles()
            if self._gather_s and trouble(event):
                self._gather(line, event.host)
            else:
                self._print_of([event.host] if event.host else [], line)

    def _gather(self, line: str, host: str) -> None:
        if not self._troubles:
            timer = threading.Timer(self._gather_s, self._gathered)
            timer.name, timer.daemon = "plain lines", True
            timer.start()
        self._troubles.setdefault(line, []).append(host)

    def _gathered(self) -> None:
        with self._lock, suppress(OSError):  # the next write raises the error of a closed pipe again
            self._print_troubles()

    def _print_troubles(self) -> None:
        troubles, self._troubles = self._troubles, {}
        for line, hosts in troubles.items():
            self._print_of(hosts, line)

    def _print_of(self, hosts: list[str], line: str) -> None:
        names = fold(hosts)
        self._print(advice.of_host(f"{names}  {line}", names) if hosts else line)

    def _said(self, event: Event, line: str) -> bool:
        if not isinstance(event, events.Delivering):
            return self._last_lines.get(event.host) == line
        before = (event.host, line) in self._sent
        self._sent.add((event.host, line))
        return before

    def _print(self, line: str) -> None:
        self._console.print(Text(f"{self._clock.time_of_day()}  {one_line(line)}"), soft_wrap=True)


def trouble(event: Event) -> str:
    """Return the line for a problem that many hosts may have in common; empty for any other event."""
    match event:
        case events.Retrying(what=what, reason=reason):
            return f"{what}: {reason}; retrying"
        case events.RoleProgress(role=role, progress=progress) if progress.retry is not None:
            return f"{role}: {progress.what}: {progress.retry.reason}; retrying"
        case events.Silent(what=what):
            return f"no sign of life while waiting for {what}; the other hosts continue"
        case events.HostEnded(result=result) if result in PLAINLY:
            return event_line(event)
    return ""


def event_line(event: Event) -> str:
    """Return the log line for ``event``; empty for an event without a line."""
    line = ""
    match event:
        case events.Observed(plan=plan):
            names = ", ".join(role.role for role in plan.roles)
            line = f"{plan.tally}: {names}" if names else "as desired"
        case events.RoleStarted(role=role, steps=steps):
            line = f"{role}: {count(steps, 'step')}"
        case events.Attached(role=role, job=job, operator=operator):
            line = f"{role}: re-attaching to {job}, which {operator or 'an earlier run'} left running"
        case events.Retrying() | events.Silent() | events.Rebooted() | events.Phase():
            line = sentence(event)
        case events.Waiting(what=what) if what not in CONTACT:  # the event `Silent` reports a slow connection
            line = sentence(event)
        case events.RoleProgress(role=role, progress=progress) if progress.retry is not None:
            line = f"{role}: {retry_sentence(progress)}"
        case events.HostEnded(result=result, sentence=why) if result in PLAINLY:
            line = f"{result}: {why}" if why else result
        case events.RoleFinished(role=role, result=result):
            line = f"{role}: {'ok' if result.status == 0 else 'failed'} after {shown_seconds(result.duration_s)}"
        case events.Delivering(role=role, artifact=artifact, done_bytes=done, total_bytes=total, source=source):
            there = f"{artifact} is on the host{',' if source else ''}" if done >= total else f"sending {artifact}"
            line = f"{role}: {' '.join((there, events.whence(source))).strip()} ({shown_bytes(total)})"
        case events.Note(text=text):
            line = text
    return line


def sentence(event: Event) -> str:
    """Return the sentence for an event about a host, such as a wait, a retry, or a reboot; empty for other events."""
    match event:
        case events.Waiting(what=what):
            return f"waiting for {what}"
        case events.Silent(what=what, seconds=seconds):
            return f"no sign of life for {shown_limit(seconds)} while waiting for {what}; the other hosts continue"
        case events.Retrying(what=what, number=number, wait_s=wait_s, reason=reason):
            return f"{what}: {reason}; retrying in {shown_seconds(wait_s)} (try {number + 1})"
        case events.Rebooted(reason=reason, seconds=seconds):
            return f"back {shown_seconds(seconds)} after the reboot ({reason})"
        case events.Phase(phase=phase, seconds=seconds):
            return f"{phase}: {shown_seconds(seconds)}"
        case _:
            return ""


def retry_sentence(progress: Progress) -> str:
    """Return why and when a step on the host is retried; empty if ``progress`` is not a retry."""
    retry = progress.retry
    return (
        f"{progress.what}: {retry.reason}; retrying in {shown_limit(retry.wait_s)} (try {retry.number + 1})"
        if retry
        else ""
    )
