"""``--timeline FILE``: the page of a run, written to a file once the run ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from hostwright.apply.journal.reading import Runs
from hostwright.cli.views.reports import check_files, put
from hostwright.cli.views.shared import warn
from hostwright.common.errors import InputError
from hostwright.common.places import state_root
from hostwright.common.quoting import sh
from hostwright.common.request import Request
from hostwright.common.userpaths import STDOUT

if TYPE_CHECKING:
    from hostwright.apply.events import Emit
    from hostwright.apply.rollout.recording import Audience
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


@contextmanager
def drawn(file: str, audience: Audience) -> Iterator[Audience]:
    """The audience for a run, whose page is written to the file once the context ends, however the run did."""
    begun: list[str] = []

    @contextmanager
    def view(targets: Sequence[TargetHost], run: str) -> Iterator[Emit]:
        begun.append(run)
        with audience.view(targets, run) as emit:
            yield emit

    try:
        yield replace(audience, view=view) if file else audience
    finally:
        if begun:
            _draw(file, begun[0])


def _draw(file: str, run: str) -> None:
    """Write the page of a run; where that fails, say how it can be made, and change nothing of how the run ended."""
    from hostwright.audit.reports.run.page import render_run

    archive = Runs(state_root())
    try:
        summary = archive.find(run)
        put(file, render_run(summary, archive.load(run)), TIMELINE.lstrip("-"))
    except InputError as error:
        warn(f"{error}; the page of the run can still be made: {sh('hostwright runs.show --run %s --html FILE', run)}")
