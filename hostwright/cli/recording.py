"""One run with all that listens to it: the view, the journal, and the watch over hosts that do not answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from rich.text import Text

from hostwright.apply.events import Emit, Event
from hostwright.apply.journal import Journal, RunHeader, secrets_in, state_root
from hostwright.apply.rollout.silence import Silence
from hostwright.cli import console
from hostwright.cli.call import Call, Connections
from hostwright.cli.live import LiveTable, Plain
from hostwright.fleet import Fleet, Member
from hostwright.plan.release import Run


@dataclass(frozen=True)
class Recording:
    """A run in progress: who runs it, where its events go, and which hosts are silent."""

    run: Run
    emit: Emit
    silence: Silence
    journal: Journal
    view: Callable[[], AbstractContextManager[None]]  #: shows what happens while its context lasts


@contextmanager
def recorded(
    call: Call, verb: str, fleet: Fleet, members: Sequence[Member], connections: Connections, *, shown: bool = True
) -> Iterator[Recording]:
    """Record a run from its beginning to however it ends, and show it as it happens.

    Where ``shown`` is false, nothing is shown but within the recording's ``view``.

    A journal that cannot be written is a warning: no fleet shall stay broken because a disk here is full.
    """
    options = {name: value for name, value in call.options.items() if value not in ("", None, False, [])}
    header = RunHeader.now(verb, [member.name for member in members], fleet.path, options)
    secrets = {*secrets_in(fleet.inventory.hosts.values()), *connections.secrets}
    listeners: list[Emit] = []

    @contextmanager
    def view() -> Iterator[None]:
        with _view(call, members) as show:
            listeners.append(show)
            yield
            listeners.remove(show)

    with Journal.begin(state_root(), header, secrets=secrets, on_trouble=_warn) as journal:
        header = journal.header

        def tell(event: Event) -> None:
            journal(event)
            for show in listeners:
                show(event)

        run = Run(header.run, header.operator, header.began, header.commit)
        with view() if shown else nullcontext(), Silence(tell) as silence:
            yield Recording(run, silence, silence, journal, view)


def _warn(sentence: str) -> None:
    console.make_console(stderr=True).print(Text(console.printable(sentence), style="yellow"))


def _view(call: Call, members: Sequence[Member]) -> AbstractContextManager[Emit]:
    """A live table in a terminal, plain lines elsewhere; on standard error when standard output is for JSON."""
    out = console.make_console(stderr=bool(call["json"]))
    if out.is_terminal and not call["json"]:
        return LiveTable(out, {member.name: [role.name for role in member.roles] for member in members})
    return Plain(out)
