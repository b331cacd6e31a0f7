"""The values that the operator's machine and workers send to each other.

To workers: a ``Brief`` for the whole run, a ``Task`` for each host, a ``Heartbeat`` again and again. From workers:
``Claim``, ``Reported`` and ``Done``, each in a ``Message``.
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
from hostwright.apply.run import Agreed
from hostwright.common.canonical import hash_of
from hostwright.common.errors import HostwrightError
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.inventory import Host
from hostwright.plan.host.newrelease import desired_sha256
from hostwright.plan.host.release import RunStamp
from hostwright.plan.targets import Roster, TargetHost


@dataclass(frozen=True, slots=True)
class Brief:
    """What every worker must know of a run. ``roster`` is the class that finds roles, stacks and known problems: it is
    sent by its name."""

    stamp: RunStamp
    verb: str
    request: Request  #: what a worker needs of it (``of_workers``)
    roles: tuple[str, ...]  #: to which all hosts were narrowed (``--roles``); empty: all
    files: Mapping[str, FileSettings]  #: of the hosts that get their files by HTTP: from the worker that has them
    roster: type[Roster]
    site: SiteArchive

    @property
    def session(self) -> str:
        """The name of the run's session on each worker, and of the topic of their messages."""
        return session_name(self.stamp.id)


def of_workers(request: Request) -> Request:
    """The request as workers get it: without the values of variables and commands, in which secrets may be."""
    return replace(request, var=(), notify="", own={})


def session_name(run: str) -> str:
    """The name of a run's session on each worker."""
    return f"hostwright-{run}"


@dataclass(frozen=True, slots=True)
class Task:
    """One host's work: the host as the inventory has it, without its secrets, and its desired state as a hash."""

    session: str
    host: str
    sealed: Sealed  #: a ``_Sent``
    wanted: str  #: ``fingerprint`` of what is wanted of the host
    agreed: Agreed | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Sent:
    """The value that is sealed: a host, and the sudo password for all hosts, if one was given."""

    host: Host
    password: Secret | None


def needed(target: TargetHost, password: Secret | None) -> frozenset[Secret]:
    """The secrets that work on a host needs: its passwords, and those among its roles' variables."""
    sudo = password or target.host.become_password
    passwords = [secret for secret in (target.host.password, sudo) if secret is not None]
    return frozenset(filter(None, (*passwords, *secrets_within(dict(target.variables)))))


def named(target: TargetHost, password: Secret | None) -> str:
    """The name of the first secret that work on a host needs; empty if it needs none."""
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
    """The texts of a host's secrets that are known without running a command."""
    return {secret.reveal() for secret in secrets_in((target.host,))}


def task_of(
    session: str, target: TargetHost, password: Secret | None, agreed: Agreed | None = None
) -> tuple[Task, tuple[str, ...]]:
    """The task of a host, and the texts of the secrets that it needs. Raises ``HostError`` if the command that prints
    one of them fails."""
    found = needed(target, password)
    known = {secret.reveal() for secret in found} | _known(target)
    sealed, texts = seal(_Sent(target.host, password), found.__contains__, known)
    return Task(session, target.name, sealed, fingerprint(target), agreed), texts


def unsealed(given: Task, texts: tuple[str, ...]) -> tuple[Host, Secret | None]:
    """The host of a task with its secrets, and the sudo password for all hosts."""
    sent = opened(given.sealed, texts, given.host)
    return sent.host, sent.password


def fingerprint(target: TargetHost) -> str:
    """A hash of a host's desired state: equal if two machines would bring the host to the same state."""
    desired = target.desired
    roles = [[role.name, list(role.needs), desired_sha256(role)] for role in desired.roles]
    return hash_of([desired.host, desired.stack.digest(), roles])


@dataclass(frozen=True, slots=True)
class Go:
    """Permission for an attempt to begin: its encrypted secrets, until it has reported something. ``ended`` are
    the jobs whose end was reported by lost workers that had the host before; ``None``: no worker had it before."""

    encrypted: bytes = field(default=b"", repr=False)
    ended: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """How a run stands, for one worker; sent again and again.

    ``going`` are the attempts that may go on there, ``leave`` those that must not. ``stopping``: jobs on hosts run to
    their end, and none is started.
    """

    stopping: bool = False
    going: Mapping[str, Go] = field(default_factory=dict)
    leave: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker has an task and asks whether it may begin; ``mailbox`` is the public key for the task's secrets."""

    worker: str  #: its name
    mailbox: bytes


@dataclass(frozen=True, slots=True)
class Reported:
    """An event of the host."""

    event: Event


@dataclass(frozen=True, slots=True)
class Done:
    """The end of the work on the host: its outcome, or the error that ended it."""

    outcome: Outcome | None = None
    error: HostwrightError | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a worker's attempt at a host. ``number`` counts the messages that are recorded, from 1; it is 0
    for one that is only shown. ``at`` is the worker's time."""

    host: str
    attempt: str
    worker: str  #: its address
    number: int
    at: str
    body: Claim | Reported | Done

    def packed(self) -> dict[str, Any]:
        """The message for the cluster's event log, which takes plain data."""
        return {"host": self.host, "body": zlib.compress(pickle.dumps(self))}

    @classmethod
    def unpacked(cls, body: bytes) -> Message:
        """The inverse of ``packed``. A worker is trusted with this: it can log in to every host."""
        message = pickle.loads(zlib.decompress(body))  # noqa: S301
        if not isinstance(message, Message):
            raise TypeError(f"no message: {type(message).__name__}")
        return message


def new_attempt() -> str:
    """A unique name for one attempt at a host."""
    return secrets.token_hex(6)
