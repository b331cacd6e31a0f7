"""The messages between the operator's machine and workers.

To workers: one ``Brief`` per run, a ``Task`` for each host, and periodic ``Heartbeat`` messages. From workers:
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
    """The data of a run that every worker receives.

    ``roster`` is the class that finds roles, stacks and known problems; the class is sent by name.
    """

    stamp: RunStamp
    verb: str
    request: Request  #: the operator's request without the values that may contain secrets
    roles: tuple[str, ...]  #: roles selected with ``--roles``; empty for all roles
    files: Mapping[str, FileSettings]  #: host → file settings of a host that fetches files by HTTP from its worker
    roster: type[Roster]
    site: SiteArchive

    @property
    def session(self) -> str:
        """The name of the run's session on each worker. The topic of the workers' messages has the same name."""
        return session_name(self.stamp.id)


def of_workers(request: Request) -> Request:
    """Return ``request`` for workers, without variable values and commands, because these may contain secrets."""
    return replace(request, var=(), notify="", own={})


def session_name(run: str) -> str:
    """Return the name that the session of the run with ID ``run`` has on each worker."""
    return f"hostwright-{run}"


@dataclass(frozen=True, slots=True)
class Task:
    """The work on one host: its inventory data without secrets, and ``wanted``, a hash of its desired state."""

    session: str
    host: str
    sealed: Sealed
    wanted: str  #: hash of the host's desired state, from ``fingerprint``
    agreed: Agreed | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class _Sent:
    host: Host
    password: Secret | None


def needed(target: TargetHost, password: Secret | None) -> frozenset[Secret]:
    """Return the secrets that work on a host needs: ``password``, the host's own passwords, and its roles' secrets."""
    sudo = password or target.host.become_password
    passwords = [secret for secret in (target.host.password, sudo) if secret is not None]
    return frozenset(filter(None, (*passwords, *secrets_within(dict(target.variables)))))


def named(target: TargetHost, password: Secret | None) -> str:
    """Return a description of the first secret that work on the host ``target`` needs; empty if no secret is needed."""
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
    """Return the texts of those secrets of ``target`` that are known without running a command."""
    return {secret.reveal() for secret in secrets_in((target.host,))}


def task_of(
    session: str, target: TargetHost, password: Secret | None, agreed: Agreed | None = None
) -> tuple[Task, tuple[str, ...]]:
    """Return the task for ``target``, and the texts of the secrets that the work needs.

    Raises ``HostError`` if the command that prints a secret fails.
    """
    found = needed(target, password)
    known = {secret.reveal() for secret in found} | _known(target)
    sealed, texts = seal(_Sent(target.host, password), found.__contains__, known)
    return Task(session, target.name, sealed, fingerprint(target), agreed), texts


def unsealed(given: Task, texts: tuple[str, ...]) -> tuple[Host, Secret | None]:
    """Return the host of the task ``given`` with secrets restored from ``texts``, and the sudo password."""
    sent = opened(given.sealed, texts, given.host)
    return sent.host, sent.password


def fingerprint(target: TargetHost) -> str:
    """Return a hash of a host's desired state. Equal hashes show that two machines compute the same state."""
    desired = target.desired
    roles = [[role.name, list(role.needs), desired_sha256(role)] for role in desired.roles]
    return hash_of([desired.host, desired.stack.digest(), roles])


@dataclass(frozen=True, slots=True)
class Go:
    """Permission for a worker's attempt to begin. The permission contains the encrypted secrets until the attempt's
    first report.

    ``ended`` are the host's jobs whose end was reported by earlier, lost workers; ``None`` if no worker was lost.
    """

    encrypted: bytes = field(default=b"", repr=False)
    ended: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The state of a run for one worker, sent periodically.

    ``going`` are the worker's attempts that may continue; ``leave`` are its attempts that must stop. If ``stopping`` is
    true, running jobs finish and no more are started.
    """

    stopping: bool = False
    going: Mapping[str, Go] = field(default_factory=dict)
    leave: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's request for permission to begin its task. ``mailbox`` is the public key for the task's secrets."""

    worker: str  #: name of the Dask worker
    mailbox: bytes


@dataclass(frozen=True, slots=True)
class Reported:
    """A worker's report of an event on the host."""

    event: Event


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an attempt's work on its host: the outcome or the error."""

    outcome: Outcome | None = None
    error: HostwrightError | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a worker's attempt to work on a host.

    ``number`` counts the attempt's recorded messages from 1. ``number`` is 0 for a message that is shown but not
    recorded. ``at`` is the time on the worker's clock.
    """

    host: str
    attempt: str
    worker: str  #: address of the Dask worker
    number: int
    at: str
    body: Claim | Reported | Done

    def packed(self) -> dict[str, Any]:
        """Return this message as plain data for the cluster's event log."""
        return {"host": self.host, "body": zlib.compress(pickle.dumps(self))}

    @classmethod
    def unpacked(cls, body: bytes) -> Message:
        """Return the message in ``body``, the data from ``packed``.

        Workers are trusted with pickled data, because they can log in to every host.
        """
        message = pickle.loads(zlib.decompress(body))  # noqa: S301
        if not isinstance(message, Message):
            raise TypeError(f"not a message: {type(message).__name__}")
        return message


def new_attempt() -> str:
    """Return a new unique ID for an attempt."""
    return secrets.token_hex(6)
