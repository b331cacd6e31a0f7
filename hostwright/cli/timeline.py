"""``--timeline FILE``: the page of a run, written to a file once the run ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from hostwright.apply.journal.reading import Runs
from hostwright.apply.run import View
from hostwright.cli.views.reports import check_files, put
from hostwright.cli.views.shared import warn
from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.common.userpaths import STDOUT

if TYPE_CHECKING:
    from hostwright.apply.events import Emit
    from hostwright.plan.targets import TargetHost

TIMELINE = "--timeline"


def check_timeline(request: Request) -> None:
    """Raise ``InputError`` where the page of a run cannot be written to this file in the end; nothing for no file."""
    file = request.timeline
    if not file:
        return
    if request.check:
        raise InputError("--check changes nothing, so there would be nothing to draw: leave one of them out", TIMELINE)
    if file == STDOUT:
        raise InputError("what the run does goes to standard output; name a file", TIMELINE)
    check_files({TIMELINE.lstrip("-"): file})


class _Begun(View):
    """Another view, and the id of the run that it showed."""

    def __init__(self, view: View):
        self._view, self.warn = view, view.warn  # type: ignore[method-assign]
        self.run = ""

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:
        """What the other view shows."""
        self.run = run
        return self._view.show(targets, run)


@contextmanager
def drawn(file: str, view: View) -> Iterator[View]:
    """The view of a run, whose page is written to the file once the context ends, however the run did."""
    begun = _Begun(view)
    try:
        yield begun
    finally:
        if file and begun.run:
            _draw(file, begun.run)


def _draw(file: str, run: str) -> None:
    """Write the page of a run; where that fails, say how it can be made, and change nothing of how the run ended."""
    from hostwright.audit.reports.run.page import render_run

    archive = Runs(state_root())
    try:
        summary = archive.find(run)
        put(file, render_run(summary, archive.load(run)), TIMELINE.lstrip("-"))
    except InputError as error:
        warn(f"{error}; the page of the run can still be made: {Command('runs.show', run=run, html='FILE')}")
