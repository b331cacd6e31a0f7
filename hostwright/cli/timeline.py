"""The option ``--timeline FILE`` of verbs: writes an HTML page about a run after the run."""

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
    """Raise ``InputError`` if the file of ``--timeline`` cannot be written. Call this before a run."""
    file = request.timeline
    if not file:
        return
    if request.check:
        raise InputError("cannot be combined with --check, which changes nothing; remove one of them", TIMELINE)
    if file == STDOUT:
        raise InputError("standard output already shows the run; name a file", TIMELINE)
    check_files({TIMELINE.lstrip("-"): file})


class _Begun(View):
    def __init__(self, view: View):
        self._view, self.warn = view, view.warn  # type: ignore[method-assign]
        self.run = ""

    def show(self, targets: Sequence[TargetHost], run: str) -> AbstractContextManager[Emit]:
        self.run = run
        return self._view.show(targets, run)


@contextmanager
def drawn(file: str, view: View) -> Iterator[View]:
    """Yield a display of a run that calls ``view``. After the run, even a failed one, write the HTML page of the run to
    ``file``.

    Without ``file``, write no page.
    """
    begun = _Begun(view)
    try:
        yield begun
    finally:
        if file and begun.run:
            _draw(file, begun.run)


def _draw(file: str, run: str) -> None:
    """Write the HTML page about ``run`` to ``file``. On an error, only warn, and recommend a command for later."""
    from hostwright.audit.reports.run.page import render_run

    archive = Runs(state_root())
    try:
        summary = archive.find(run)
        put(file, render_run(summary, archive.load(run)), TIMELINE.lstrip("-"))
    except InputError as error:
        warn(f"{error}; write the page of the run later: {Command('runs.show', run=run, html='FILE')}")
