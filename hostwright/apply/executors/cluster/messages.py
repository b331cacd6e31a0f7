"""What is said between the operator's machine and a worker, as plain values.

To workers: a ``Brief`` for the whole run, a ``Task`` for each host, a ``Heartbeat`` again and again. From workers:
``Claim``, ``Reported`` and ``Done``, each in an envelope (``Message``).
"""

from __future__ import annotations

import pickle
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hostwright.apply.delivery.sources.settings import FileSettings
from hostwright.apply.events import Event
from hostwright.apply.executors.cluster.sealing import Sealed, opened, seal
from hostwright.apply.executors.cluster.sites import SiteArchive
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.journal.redaction import secrets_in, secrets_within
from hostwright.common.canonical import hash_of
from hostwright.common.errors import HostwrightError
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.inventory import Host
from hostwright.plan.host.newrelease import desired_sha256
from hostwright.plan.host.release import Run
from hostwright.plan.model import Plan
from hostwright.plan.targets import Roster, TargetHost


@dataclass(frozen=True, slots=True)
class Brief:
    """What every worker must know of a run. ``roster`` is the class that knows roles, stacks and known problems: it
    travels by its name."""

    run: Run
    verb: str
    request: Request  #: what a worker needs of it (``of_workers``)
    roles: tuple[str, ...]  #: to which all hosts were narrowed (``--roles``); empty: all
    files: Mapping[str, FileSettings]  #: of the hosts that get their files by HTTP: from the worker that has them
    roster: type[Roster]
    site: SiteArchive

    @property
    def session(self) -> str:
        """The name of the run's session on each worker, and of the topic of what they tell."""
        return session_name(self.run.id)


def of_workers(request: Request) -> Request:
    """The request as workers get it: without the values of variables and commands, in which secrets may be."""
    return replace(request, var=(), notify="", own={})


def session_name(run: str) -> str:
    """The name of a run's session on each worker."""
    return f"hostwright-{run}"


@dataclass(frozen=True, slots=True)
class Task:
    """One host's work: the host as the inventory has it, without its secrets, and what must come of it."""

    session: str
    host: str
    sealed: Sealed  #: a ``_Sent``
    wanted: str  #: ``fingerprint`` of what is wanted of the host
    saved: Plan | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is sealed: a host, and the sudo password that was given for all, if one was."""

    host: Host
    password: Secret | None


def needed(target: TargetHost, password: Secret | None) -> frozenset[Secret]:
    """The secrets that working on a host takes: its passwords, and those among its roles' variables."""
    sudo = password or target.host.become_password
    passwords = [secret for secret in (target.host.password, sudo) if secret is not None]
    return frozenset(filter(None, (*passwords, *secrets_within(dict(target.variables)))))


def named(target: TargetHost, password: Secret | None) -> str:
    """What the first secret is called that working on a host takes; empty where it takes none."""
    if password is not None:
        return "the sudo password (--ask-become-pass)"
    if target.host.password:
        return "its password for ssh (ansible_password)"
    if target.host.become_password:
        return "its password for sudo (ansible_become_password)"
    found = needed(target, password)
    names = (name for name, value in target.host.vars.items() if not found.isdisjoint(secrets_within(value.value)))
    if found:
        return next(names, "a secret of its roles")
    within = seal(target.host, lambda _: False, _known(target))[1]
    return "a variable that has a password in its text" if within else ""


def _known(target: TargetHost) -> set[str]:
    """The texts of a host's secrets, as far as they are known without running a command."""
    return {secret.reveal() for secret in secrets_in((target.host,))}


def task_of(
    session: str, target: TargetHost, password: Secret | None, saved: Plan | None = None
) -> tuple[Task, tuple[str, ...]]:
    """The task of a host, and the texts of the secrets that it takes. Raises ``HostError`` where the command that
    prints one of them fails."""
    found = needed(target, password)
    known = {secret.reveal() for secret in found} | _known(target)
    sealed, texts = seal(_Sent(target.host, password), found.__contains__, known)
    return Task(session, target.name, sealed, fingerprint(target), saved), texts


def unsealed(given: Task, texts: tuple[str, ...]) -> tuple[Host, Secret | None]:
    """The host of a task with its secrets, and the sudo password that was given for all."""
    sent = opened(given.sealed, texts, given.host)
    return sent.host, sent.password


def fingerprint(target: TargetHost) -> str:
    """A hash of all that is wanted of a host: equal where two machines would bring it to the same."""
    desired = target.desired
    roles = [[role.name, list(role.needs), desired_sha256(role)] for role in desired.roles]
    return hash_of([desired.host, desired.stack.digest(), roles])


@dataclass(frozen=True, slots=True)
class Go:
    """That an attempt may begin: its encrypted secrets, for as long as it has told nothing. ``ended`` are the
    jobs whose end was told by workers that had the host before and were lost; ``None``: nobody had it before."""

    encrypted: bytes = field(default=b"", repr=False)
    ended: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How a run stands, as one worker must know it; said again and again.

    ``going`` are the attempts that may go on there, ``leave`` those that must not. ``stopping``: what runs on hosts
    comes to its end, nothing is begun.
    """

    stopping: bool = False
    going: Mapping[str, Go] = field(default_factory=dict)
    leave: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker has a task and asks whether it may begin; ``mailbox`` is the address for the task's secrets."""

    worker: str  #: its name
    mailbox: bytes


@dataclass(frozen=True, slots=True)
class Reported:
    """Something happened on the host."""

    event: Event


@dataclass(frozen=True, slots=True)
class Done:
    """The work on the host has come to its end, good or bad: one of the two is there."""

    outcome: Outcome | None = None
    error: HostwrightError | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What a worker says in one of its attempts at a host. ``number`` counts what is recorded, from 1; it is 0 for what
    is only shown. ``at`` is the worker's time."""

    host: str
    attempt: str
    worker: str  #: its address
    number: int
    at: str
    body: Claim | Reported | Done

    def packed(self) -> dict[str, Any]:
        """For the cluster's event log, which takes plain data."""
        return {"host": self.host, "body": zlib.compress(pickle.dumps(self))}

    @classmethod
    def unpacked(cls, body: bytes) -> Message:
        """The inverse. Workers are ours: what they send is trusted as their login to every host is."""
        message = pickle.loads(zlib.decompress(body))  # noqa: S301
        if not isinstance(message, Message):
            raise TypeError(f"no message: {type(message).__name__}")
        return message


def new_attempt() -> str:
    """A name for one attempt at a host, which no other has."""
    return secrets.token_hex(6)
