"""A run whose machine died while workers of a cluster worked on its hosts: its journal gets what they recorded of it.

A worker numbers what it records of an attempt at a host, and the journal keeps these numbers. So nothing is recorded
twice, and what is missing is known. A host that has ended in the journal has nothing missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostwright.apply.events import HostEnded, Witness
from hostwright.apply.executors.cluster.errand import Done, Message, Reported
from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.records import RUNNING
from hostwright.apply.journal.results import parsed, scan
from hostwright.apply.journal.writing import Journal
from hostwright.apply.rollout.rollout import result_of
from hostwright.common.errors import HostError
from hostwright.common.places import JOURNAL

if TYPE_CHECKING:
    from hostwright.apply.events import Event
    from hostwright.common.secret import Secret

#: asks workers for what they recorded of a run, beyond these numbers of attempts
Ask = Callable[[str, Mapping[str, int]], Iterable[Message]]


def is_left(run: RunSummary) -> bool:
    """Whether a run was given to a cluster, and its machine died before it ended."""
    return bool(run.header.options.get("scheduler")) and run.status is None and run.state != RUNNING


def take_over(run: RunSummary, ask: Ask, *, secrets: Iterable[Secret], warn: Callable[[str], None]) -> int:
    """Have workers let go of the hosts of a run that was left behind, and record what they did; how many records.

    Raises ``InputError`` where the run goes on after all.
    """
    journal = run.folder / JOURNAL
    known = numbers(journal)
    _, ended = scan(journal)
    missing = in_order(ask(run.run, known), known, ended)
    if missing:
        with Journal.reopened(run.folder, run.header, secrets=secrets, on_trouble=warn) as reopened:
            for at, event in missing:
                reopened.add(event, at)
    return len(missing)


def numbers(journal: Path) -> dict[str, int]:
    """The number of the last record of each attempt that a journal has."""
    found: dict[str, int] = {}
    try:
        with journal.open("rb") as file:
            for line in file:
                witness = (parsed(line) or {}).get("witness") if b'"witness"' in line else None
                if isinstance(witness, dict):
                    _count(witness, found)
    except OSError:
        return found
    return found


def _count(witness: Mapping[str, Any], found: dict[str, int]) -> None:
    match witness:
        case {"attempt": str(attempt), "number": int(number)}:
            found[attempt] = max(number, found.get(attempt, 0))


def in_order(messages: Iterable[Message], known: Mapping[str, int], ended: Iterable[str]) -> list[tuple[str, Event]]:
    """What is missing in a journal, each once, with its time: host by host, attempt by attempt, in their order."""
    over = set(ended)
    new = {
        (message.attempt, message.number): message
        for message in messages
        if message.number > known.get(message.attempt, 0) and message.host not in over
    }
    begun: dict[str, str] = {}
    for message in new.values():
        begun[message.attempt] = min(message.at, begun.get(message.attempt, message.at))
    ordered = sorted(new.values(), key=lambda each: (begun[each.attempt], each.attempt, each.number))
    return [(message.at, event) for message in ordered if (event := _event(message)) is not None]


def _event(message: Message) -> Event | None:
    witness = Witness(message.worker, message.attempt, message.number)
    match message.body:
        case Reported(event=event):
            return replace(event, witness=witness)
        case Done(outcome=outcome) if outcome is not None:
            return HostEnded(message.host, outcome.word, witness=witness)
        case Done(error=HostError() as error):
            return HostEnded(message.host, result_of(error), error.sentence, witness=witness)
        case Done(error=error) if error is not None:
            return HostEnded(message.host, "failed", str(error), witness=witness)
    return None
