"""Checks whether a cluster can work on the hosts of a run: what would be sent, and whether its workers fit.

They must have the same Hostwright, Python and Dask, and the stack's files. Every misfit of all workers is reported at
once, before any host is touched.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path

from distributed import Client

import hostwright
from hostwright import __version__
from hostwright.apply.delivery.sources.settings import read_file_settings
from hostwright.apply.executors.cluster.client import ANSWER_S, OPTION, TLS, ask_each, connected, in_time, is_loopback
from hostwright.apply.executors.cluster.messages import named
from hostwright.apply.executors.cluster.sites import SiteArchive, files_below, holding, pack
from hostwright.apply.executors.threads import DaemonThreads
from hostwright.apply.journal.redaction import MIN_INLINE, secrets_in
from hostwright.common.command import Command
from hostwright.common.errors import ArtifactError, InputError, InputErrors
from hostwright.common.operator import machine_id
from hostwright.common.secret import Secret
from hostwright.common.text import short
from hostwright.plan.targets import Roster, TargetHost, Targets
from hostwright.stack.stack import Artifact
from hostwright.stack.store.artifacts import Store

FEW = 3  #: files of a worker that are named; the others are counted


@dataclass(frozen=True, slots=True)
class Machine:
    """The report of one process of a cluster. ``missing`` are the names of files that it lacks."""

    version: str
    code: str  #: a digest of Hostwright's own files
    python: str  #: major and minor version
    dask: str
    machine: str  #: equal on one machine alone
    missing: tuple[str, ...] = ()


def this_machine(artifacts: Sequence[Artifact] = ()) -> Machine:
    """This process, and which of these files it lacks."""
    store, missing = Store.default(), []
    for artifact in artifacts:
        try:
            store.locate(artifact)
        except ArtifactError:
            missing.append(artifact.file)
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Machine(__version__, code_digest(), python, version("distributed"), machine_id(), tuple(missing))


@cache
def code_digest() -> str:
    """A digest of the package with its standard roles: two checkouts of one version may differ."""
    root = Path(hostwright.__file__).parent
    digest = hashlib.sha256()
    for path, name in files_below([(root, "")]):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Demands:
    """The requirements for workers: like ``ours``, with these files, and connected by TLS if secrets are sent."""

    ours: Machine
    artifacts: tuple[Artifact, ...] = ()
    tls: bool = False


def misfits(
    demands: Demands, machines: Mapping[str, Machine], errors: Mapping[str, BaseException]
) -> Mapping[str, str]:
    """By address, why a process does not fit; ``errors`` are those of processes that did not report themselves."""
    found = {address: _unreported(error) for address, error in errors.items()}
    found |= {address: why for address, machine in machines.items() if (why := _misfit(demands, machine))}
    if demands.tls:
        plain = "is not connected by TLS, and is sent no password"
        found |= {address: plain for address in machines if not address.startswith(TLS)}
    return found


def _unreported(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"hangs ({error})"
    text = f"{type(error).__name__}: {error}"  # Dask sends the text of an error that it cannot send
    if any(kind in text for kind in ("ModuleNotFoundError", "ImportError", "AttributeError")):
        return "has no Hostwright, or another version: install the same there as here"
    return f"could not say what it is ({short(text)})"


def _misfit(demands: Demands, machine: Machine) -> str:
    ours = demands.ours
    pairs = (
        ("Python", ours.python, machine.python),
        ("Hostwright", ours.version, machine.version),
        ("distributed", ours.dask, machine.dask),
    )
    for what, here, there in pairs:
        if here != there:
            return f"has {what} {there}, and this machine has {here}: install the same there"
    if ours.code != machine.code:
        return f"has Hostwright {machine.version} with other code than this machine: install the same there"
    if machine.missing:
        more = f" and {len(machine.missing) - FEW} more" if len(machine.missing) > FEW else ""
        return (
            f"lacks {', '.join(machine.missing[:FEW])}{more}: run {Command('mirror')} there, or point its "
            "HOSTWRIGHT_ARTIFACTS to a directory that has the files"
        )
    return ""


def files_of(targets: Iterable[TargetHost]) -> tuple[Artifact, ...]:
    """The files that a worker may need for these hosts, without those that hosts fetch themselves."""
    found: dict[str, Artifact] = {}
    for target in targets:
        settings = read_file_settings(target.host)
        for artifact in target.artifacts:
            if not settings.fetches(artifact):
                found.setdefault(f"{artifact.sha256}/{artifact.file}", artifact)
    return tuple(found.values())


def refuse_secrets(address: str, targets: Iterable[TargetHost], password: Secret | None) -> bool:
    """Whether work on these hosts needs a secret. Raises ``InputError`` if one would be sent without TLS."""
    found = next(((target.name, name) for target in targets if (name := named(target, password))), None)
    if found and not address.startswith(TLS):
        host, name = found
        raise InputError(
            f"{host} needs {name}, and secrets are sent to workers over TLS only: take a scheduler at tls://…, or let "
            "the workers do without (sudo without a password, keys of their own or an ssh-agent)",
            OPTION,
        )
    return found is not None


def refuse_holding(address: str, archive: SiteArchive, roster: Roster, targets: Iterable[TargetHost]) -> None:
    """Raise ``InputError`` if a file that would be sent without TLS contains a secret of the inventory."""
    if address.startswith(TLS):
        return
    known = (secret.reveal() for secret in secrets_in(roster.inventory.hosts.values(), targets))
    if file := holding(archive, (text for text in known if len(text) >= MIN_INLINE)):
        raise InputError(
            f"{file} holds a password of the inventory, and secrets are sent to workers over TLS only: take a "
            "scheduler at tls://…, or keep the password in the inventory",
            str(roster.site.root),
        )


def check(client: Client, address: str, demands: Demands, targets: Iterable[TargetHost]) -> None:
    """Raise ``InputErrors`` unless the scheduler and every worker fit, and the hosts' addresses mean the same there."""
    workers = tuple(in_time(client.nthreads, ANSWER_S) or ())
    if not workers:
        raise InputError(f"no worker is at {address}: start some with `dask worker {address}`", OPTION)
    machines, errors = ask_each(client, workers, this_machine, demands.artifacts)
    mistakes = [InputError(f"the worker {each} {why}") for each, why in misfits(demands, machines, errors).items()]
    scheduler, trouble = _scheduler(client)
    unfit = misfits(replace(demands, tls=False), scheduler, trouble).values()
    mistakes += [InputError(f"the scheduler {address} {why}") for why in unfit]
    mistakes += elsewhere(targets, demands.ours, machines)
    if mistakes:
        raise InputErrors(mistakes)


def _scheduler(client: Client) -> tuple[Mapping[str, Machine], Mapping[str, BaseException]]:
    """The scheduler's process: it reads what is sent to workers, and needs the same packages."""
    threads = DaemonThreads(1, "dask")
    future: Future[Machine] = threads.submit(client.run_on_scheduler, this_machine)
    try:
        return {"": future.result(ANSWER_S)}, {}
    except Exception as error:  # noqa: BLE001 - whatever it is, the scheduler does not fit
        return {}, {"": error}


def elsewhere(targets: Iterable[TargetHost], ours: Machine, others: Mapping[str, Machine]) -> Iterator[InputError]:
    """An error for each host whose address means another machine on a worker than here."""
    away = [name for name, machine in others.items() if machine.machine != ours.machine]
    for target in targets:
        if target.host.local:
            yield InputError(
                f"{target.name} is this machine (ansible_connection: local), and a worker would take itself for it: "
                "leave it out, and provision it without --executor"
            )
        elif away and is_loopback(target.host.address or target.name):
            yield InputError(
                f"{target.name}: the address {target.host.address or target.name} means {away[0]} itself there: give "
                "it an address that workers reach it at"
            )


@dataclass(frozen=True)
class Cluster:
    """A cluster that fits the hosts of a run."""

    client: Client
    address: str
    demands: Demands
    archive: SiteArchive
    roles: tuple[str, ...] = ()  #: to which the hosts were narrowed
    password: Secret | None = field(default=None, repr=False)


@contextmanager
def opened(address: str, roster: Roster, targets: Targets, password: Secret | None) -> Iterator[Cluster]:
    """Connect to the scheduler at this address, and check that its workers can work on these hosts.

    Raises ``InputError`` if they cannot; no host is touched.
    """
    secret = refuse_secrets(address, targets, password)
    archive = pack(roster)
    refuse_holding(address, archive, roster, targets)
    with connected(address, "hostwright") as client:
        demands = Demands(this_machine(), files_of(targets), tls=secret)
        check(client, address, demands, targets)
        yield Cluster(client, address, demands, archive, targets.roles, password)
