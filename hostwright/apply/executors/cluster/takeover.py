"""Completes the journal of a run whose machine died while workers of a cluster worked on its hosts.

The journal contains the number of each record from a worker, so a takeover records nothing twice.

An attempt at a host begins only after the unsent records of the previous attempt were recovered. So only the last
attempt in the journal can lack records. The result of a host is the result of the last attempt that worked on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostwright.apply.events import EventOrigin, HostEnded
from hostwright.apply.executors.cluster.client import ANSWER_S, CLOSE_S, OPTION, ask_each, connected, in_time
from hostwright.apply.executors.cluster.messages import Done, Message, Reported, session_name
from hostwright.apply.executors.cluster.session import leave
from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.results import parsed, scan
from hostwright.apply.journal.writing import Journal
from hostwright.apply.rollout.rollout import result_of
from hostwright.common.errors import HostError, InputError, InputErrors
from hostwright.common.places import JOURNAL

if TYPE_CHECKING:
    from hostwright.apply.events import Event
    from hostwright.common.secret import Secret

#: function that returns the later messages of a run, given each attempt's last known message number
Ask = Callable[[str, Mapping[str, int]], Iterable[Message]]
_Attempts = dict[str, dict[int, Message]]  #: attempt → message number → message about one host


@dataclass(frozen=True, slots=True)
class Recorded:
    """The part of one attempt that the journal contains: the attempt's host and the number of its last record."""

    host: str
    number: int


def take_over(run: RunSummary, ask: Ask, *, secrets: Iterable[Secret], warn: Callable[[str], None]) -> int:
    """Complete the journal of ``run``, whose own machine died, and make the run's workers release their hosts.

    Return the number of new records. Raises ``InputError`` if the run is still in progress, or if another process is
    taking it over.
    """
    journal = run.folder / JOURNAL
    with Journal.reopened(run.folder, run.header, secrets=secrets, on_trouble=warn) as reopened:
        known = recorded(journal)
        _, ended = scan(journal)
        messages = ask(run.run, {attempt: each.number for attempt, each in known.items()})
        missing = in_order(messages, known, ended)
        for at, event in missing:
            reopened.add(event, at)
    return len(missing)


def left_behind(address: str, run: str, known: Mapping[str, int]) -> list[Message]:
    """Make the workers of a cluster release the hosts of ``run``, whose own machine died.

    Return the workers' records that follow the ``known`` number of each attempt. Raises ``InputError`` if the scheduler
    does not list its workers. Raises ``InputErrors`` if a worker does not answer, because that worker may still work on
    a host.
    """
    with connected(address, f"hostwright-{run}") as client:
        workers = in_time(client.nthreads, ANSWER_S)
        if workers is None:
            raise InputError(f"{address} did not list its workers within {ANSWER_S:.0f} s; try again", OPTION)
        answers, errors = ask_each(client, tuple(workers), leave, run, known)
        in_time(lambda: client.unregister_worker_plugin(session_name(run)), CLOSE_S)
    if errors:
        raise InputErrors(
            [
                InputError(f"the worker {worker} did not release the run {run}: {error}")
                for worker, error in errors.items()
            ]
        )
    return [message for messages in answers.values() for message in messages]


def recorded(journal: Path) -> dict[str, Recorded]:
    """Return each attempt in ``journal`` with the number of its last record, in the order of these records."""
    found: dict[str, Recorded] = {}
    try:
        with journal.open("rb") as file:
            for line in file:
                if b'"witness"' in line:
                    _take(parsed(line) or {}, found)
    except OSError:
        return found
    return found


def _take(record: Mapping[str, Any], found: dict[str, Recorded]) -> None:
    match record:
        case {"host": str(host), "witness": {"attempt": str(attempt), "number": int(number)}}:
            before = found.pop(attempt, Recorded(host, 0))
            # A note about a worker's file server has an empty host name, so an earlier host name is kept.
            found[attempt] = Recorded(before.host or host, max(number, before.number))


def in_order(
    messages: Iterable[Message], known: Mapping[str, Recorded], ended: Iterable[str]
) -> list[tuple[str, Event]]:
    """Return the workers' events that a journal lacks, without duplicates, sorted by host, then by attempt.

    Each event is paired with its time. ``known`` is the part of each attempt in the journal; ``ended`` are the hosts
    whose work ended.
    """
    over = set(ended)
    hosts: dict[str, _Attempts] = {}
    for message in messages:
        if message.number and message.host not in over:
            hosts.setdefault(message.host, {}).setdefault(message.attempt, {})[message.number] = message
    missing = filter(None, (_missing(host, attempts, known) for host, attempts in hosts.items()))
    told = (message for of_host in sorted(missing, key=lambda of_host: of_host[0].at) for message in of_host)
    return [(message.at, event) for message in told if (event := _event(message)) is not None]


def _missing(host: str, attempts: _Attempts, known: Mapping[str, Recorded]) -> list[Message]:
    last = next((each for each in reversed([*known]) if each in attempts or known[each].host == host), "")
    began = {attempt: told[min(told)].at for attempt, told in attempts.items()}
    later = sorted(set(attempts).difference(known), key=began.__getitem__)
    # The first message of an attempt only requests permission, so an attempt with one message did no work.
    worked = [attempt for attempt in (last, *later) if max(attempts.get(attempt, ()), default=0) > 1]
    return [
        message
        for attempt in worked
        for number, message in sorted(attempts[attempt].items())
        if (attempt != last or number > known[last].number)
        and (attempt == worked[-1] or not isinstance(message.body, Done))
    ]


def _event(message: Message) -> Event | None:
    origin = EventOrigin(message.worker, message.attempt, message.number)
    match message.body:
        case Reported(event=event):
            return replace(event, origin=origin)
        case Done(outcome=outcome) if outcome is not None:
            return HostEnded(message.host, outcome.word, origin=origin)
        case Done(error=HostError() as error):
            return HostEnded(message.host, result_of(error), error.sentence, origin=origin)
        case Done(error=error) if error is not None:
            return HostEnded(message.host, "failed", str(error), origin=origin)
    return None
