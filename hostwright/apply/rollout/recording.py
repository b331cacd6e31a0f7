"""One run over many hosts with all that listens to it: its journal, a view, the watch over hosts that are silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from hostwright.apply.events import Emit, Event
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.rollout.silence import Silence
from hostwright.common.input.passwordcommand import get_all
from hostwright.common.interruption import on_interrupt
from hostwright.common.places import state_root
from hostwright.plan.host.release import RunStamp
from hostwright.plan.targets import Roster, TargetHost

if TYPE_CHECKING:
    from hostwright.apply.journal.writing import Journal

T = TypeVar("T")


def _discard(_: object) -> None:
    """Takes a message and does nothing with it."""


@contextmanager
def _unseen(_: Sequence[TargetHost], _run: str) -> Iterator[Emit]:
    """A view that shows nothing."""
    yield _discard


class _ViewFailed(BaseException):
    """A view raised ``error``, in the thread of a host or elsewhere. No guard around a host takes it for the host's."""

    def __init__(self, error: Exception):
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class Audience:
    """Where a run is shown while it lasts.

    ``view`` is entered once the run has begun, with its hosts and its id (empty where nothing is recorded, as for an
    audit), and gives the function that is called with its events, from any thread. ``warn`` takes sentences that are
    no event: a record that cannot be kept, an unknown stack. ``notify`` is a command
    for ``/bin/sh`` that gets the run as JSON at its first failure and at its end; it runs in the site's directory.
    """

    view: Callable[[Sequence[TargetHost], str], AbstractContextManager[Emit]] = _unseen
    warn: Callable[[str], None] = _discard
    notify: str = ""

    @contextmanager
    def shown(self, targets: Sequence[TargetHost], run: str = "") -> Iterator[Emit]:
        """The view while it lasts. An error of its own is no host's: it ends the run, and is raised here."""

        def tell(event: Event) -> None:
            try:
                show(event)
            except Exception as error:
                raise _ViewFailed(error) from error

        with self.view(targets, run) as show:
            try:
                yield tell
            except _ViewFailed as failed:
                raise failed.error from failed

    @classmethod
    def of(cls, emit: Emit) -> Self:
        """An audience of one function that is called with all events."""
        return cls(lambda _targets, _run: nullcontext(emit))


NOBODY = Audience()


@dataclass(frozen=True, slots=True)
class RunResults(Generic[T]):
    """What came of a run: its id in the journal (empty where it could not be recorded), what became of each host, and
    the exit status."""

    run: str
    results: Results[T]
    status: int


@dataclass(frozen=True)
class Recording:
    """A run in progress: who runs it, where its events go, and which hosts are silent."""

    run: RunStamp
    emit: Emit
    silence: Silence
    journal: Journal
    record: str  #: the run's id in the journal; empty where it could not be recorded
    view: Callable[[], AbstractContextManager[None]]  #: shows what happens while its context lasts


@contextmanager
def recorded(
    verb: str,
    roster: Roster,
    targets: Sequence[TargetHost],
    connections: Connections,
    *,
    audience: Audience,
    options: Mapping[str, Any],
    left: str,
    record: str = "",
    shown: bool = True,
) -> Iterator[Recording]:
    """Record a run from its beginning to however it ends, and show it as it happens.

    ``left`` is the message for Ctrl-C (``on_interrupt``), and ``record`` how that goes on where the run is recorded;
    ``{run}`` in it stands for the run's id.
    Where ``shown`` is false, nothing is shown but within the recording's ``view``.

    A journal that cannot be written is a warning: no fleet shall stay broken because a disk here is full.
    """
    from hostwright.apply.journal.header import RunHeader  # only a run that is recorded needs them
    from hostwright.apply.journal.redaction import secrets_in
    from hostwright.apply.journal.writing import Journal
    from hostwright.apply.notifying import Notifier, secrets_of

    get_all(secret for target in targets for secret in (target.host.password, connections.password(target)))
    header = RunHeader.now(verb, [target.name for target in targets], roster.path, options, site=roster.site.root)
    secrets = {
        *secrets_in(roster.inventory.hosts.values(), targets),
        *connections.secrets,
        *secrets_of(audience.notify),
    }
    listeners: list[Emit] = []

    @contextmanager
    def view() -> Iterator[None]:
        with audience.shown(targets, header.run) as show:
            listeners.append(show)
            yield
            listeners.remove(show)

    begun = Journal.begin(state_root(), header, secrets=secrets, on_trouble=audience.warn)
    with ExitStack() as after, begun as journal:
        header = journal.header
        notifier = Notifier(audience.notify, header, journal.redactor, audience.warn, roster.site.root)
        after.callback(lambda: notifier.end(journal.ending))
        kept = header.run if journal.kept else ""
        message = left + (record.format(run=kept) if kept else "")

        def tell(event: Event) -> None:
            journal(event)
            notifier(event)
            for show in listeners:
                show(event)

        run = RunStamp(header.run, header.operator, header.began, header.commit)
        with on_interrupt(message), view() if shown else nullcontext(), Silence(tell) as silence:
            yield Recording(run, silence, silence, journal, kept, view)
