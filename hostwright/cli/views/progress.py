"""Displays work in progress: a table or lines for a run, a counter of audited hosts, repeated audits."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from hostwright.apply.events import Emit, Event
from hostwright.apply.run import View
from hostwright.audit.auditing import HostAudited
from hostwright.cli import console
from hostwright.cli.live.plain import Plain
from hostwright.cli.live.table import LiveTable
from hostwright.cli.views.shared import warn
from hostwright.common import durations
from hostwright.common.errors import AS_DESIRED, InputError
from hostwright.common.request import Request
from hostwright.common.text import shown_limit
from hostwright.fleet import TargetHost
from hostwright.inventory.patterns import fold

NAMED = 5  #: maximum number of unfinished hosts that the progress line names
LEAST_S = 5.0  #: minimum time in seconds between the starts of two audits with `--watch`


class TerminalView(View):
    """A display that prints warnings on standard error."""

    def warn(self, sentence: str) -> None:
        """Print ``sentence`` as a warning."""
        warn(sentence)


class RunView(TerminalView):
    """The display of a run: a live table in a terminal, plain lines elsewhere.

    With ``quiet``, the display uses standard error, because standard output is reserved for a report.
    """

    def __init__(self, *, quiet: bool):
        self._quiet = quiet

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:
        """Return the display for ``run``: a live table in a terminal, else plain lines."""
        out = console.make_console(stderr=self._quiet)
        if self._quiet or not console.redraws(out):
            return Plain(out, run, len(targets))
        headings = {role.name: role.short for target in targets for role in target.roles}
        return LiveTable(out, {target.name: [role.name for role in target.roles] for target in targets}, headings)


def run_view(request: Request, *, quiet: bool = False) -> RunView:
    """Return the display of a run. With ``--json`` or ``quiet``, the display uses standard error."""
    return RunView(quiet=quiet or request.json)


class AuditView(TerminalView):
    """The display of an audit: the number of finished hosts."""

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:  # noqa: ARG002
        """Return a counter of audited hosts for these ``targets``."""
        return Audited("probing", (target.name for target in targets))


class Counting:
    """A line on standard error with the number of finished hosts; nothing without a terminal.

    The last few unfinished hosts are named, because one of them may hang.
    """

    def __init__(self, word: str, hosts: Iterable[str]):
        out = console.make_console(stderr=True)
        description = TextColumn("{task.description}", markup=False)
        columns = (TextColumn(word), BarColumn(), MofNCompleteColumn(), description)
        self._progress = Progress(*columns, console=out, transient=True, disable=not console.redraws(out))
        self._left = set(hosts)
        self._task = self._progress.add_task("", total=len(self._left))
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def count(self, host: str, status: str = "") -> None:
        """Count ``host`` as finished with ``status``. Thread-safe."""
        with self._lock:
            self._left.discard(host)
            self._counts.update([status] if status else [])
            parts = [", ".join(f"{number} {status}" for status, number in sorted(self._counts.items()))]
            parts += [f"left: {fold(self._left)}"] if 0 < len(self._left) <= NAMED else []
        self._progress.update(self._task, advance=1, description="; ".join(filter(None, parts)))


class Audited(Counting):
    """A counter of audited hosts, in total and by status."""

    def __call__(self, event: Event) -> None:
        """Count the host of ``event`` if the event reports the end of its audit. Thread-safe."""
        if isinstance(event, HostAudited):
            self.count(event.host, event.audit.status)


def watch(every: str, once: Callable[[], tuple[int, RenderableType]]) -> int:
    """Call ``once`` at intervals of ``every`` (such as ``30s``), and show the returned text, until Ctrl-C. Return the
    last exit status of ``once``.
    """
    try:
        period_s = max(durations.seconds(every), LEAST_S)
    except ValueError as error:
        raise InputError(str(error), "--watch") from error
    status = AS_DESIRED
    shown: RenderableType | None = None
    out = console.make_console()
    try:
        with Live(Text("probing the hosts…"), console=out, screen=console.redraws(out), auto_refresh=False) as live:
            while True:
                began = time.monotonic()
                status, shown = once()
                head = f"{time.strftime('%H:%M:%S')}, repeated every {shown_limit(period_s)}; press Ctrl-C to stop"
                live.update(Group(Text(head, style="dim"), shown), refresh=True)
                pause_s = max(0.0, period_s - (time.monotonic() - began))
                time.sleep(pause_s)  # `--watch` repeats by the clock and waits for no condition; Ctrl-C ends the pause
    except KeyboardInterrupt:
        if shown is None:
            raise
        if out.is_terminal:  # `Live` has erased the last audit from the terminal's screen
            out.print(shown)
        return status
