"""Checks whether the workers of a cluster can work on the hosts of a run, and which secrets would be sent.

Workers need the same Hostwright, Python and Dask as this machine, and the stack's files. All problems are reported at
once.
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

FEW = 3  #: maximum number of missing files that a message lists


@dataclass(frozen=True, slots=True)
class Machine:
    """The software and identity of one process of a cluster. ``missing`` are the files that the machine of the process
    lacks.
    """

    version: str
    code: str  #: digest of Hostwright's source files
    python: str  #: major and minor version of Python
    dask: str
    machine: str  #: ID of the machine from /etc/machine-id
    missing: tuple[str, ...] = ()


def this_machine(artifacts: Sequence[Artifact] = ()) -> Machine:
    """Return the software and identity of this process, with the ``artifacts`` that this machine lacks."""
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
    """Return a digest of Hostwright's package with its standard roles. Two checkouts of one version may differ."""
    root = Path(hostwright.__file__).parent
    digest = hashlib.sha256()
    for path, name in files_below([(root, "")]):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Demands:
    """The requirements for workers: the software of ``ours``, the files ``artifacts``, and TLS if secrets are sent."""

    ours: Machine
    artifacts: tuple[Artifact, ...] = ()
    tls: bool = False


def misfits(
    demands: Demands, machines: Mapping[str, Machine], errors: Mapping[str, BaseException]
) -> Mapping[str, str]:
    """Return address → reason, for each unfit process of a cluster.

    ``errors`` are the errors of processes that have not reported a ``Machine``.
    """
    found = {address: _unreported(error) for address, error in errors.items()}
    found |= {address: why for address, machine in machines.items() if (why := _misfit(demands, machine))}
    if demands.tls:
        plain = "is not connected by TLS, and so cannot receive passwords; enable TLS for the worker"
        found |= {address: plain for address in machines if not address.startswith(TLS)}
    return found


def _unreported(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"hangs ({error})"
    text = f"{type(error).__name__}: {error}"  # Dask may transfer an error only as text.
    if any(kind in text for kind in ("ModuleNotFoundError", "ImportError", "AttributeError")):
        return "has no Hostwright, or another version; install the same version there"
    return f"did not report its versions ({short(text)})"


def _misfit(demands: Demands, machine: Machine) -> str:
    ours = demands.ours
    pairs = (
        ("Python", ours.python, machine.python),
        ("Hostwright", ours.version, machine.version),
        ("distributed", ours.dask, machine.dask),
    )
    for what, here, there in pairs:
        if here != there:
            return f"has {what} {there}, but this machine has {here}; install the same version there"
    if ours.code != machine.code:
        return f"has Hostwright {machine.version} with other code than this machine; install the same code there"
    if machine.missing:
        more = f" and {len(machine.missing) - FEW} more" if len(machine.missing) > FEW else ""
        return (
            f"lacks {', '.join(machine.missing[:FEW])}{more}; run {Command('mirror')} there, or set its "
            "HOSTWRIGHT_ARTIFACTS to a directory that has the files"
        )
    return ""


def files_of(targets: Iterable[TargetHost]) -> tuple[Artifact, ...]:
    """Return the files that a worker may need for ``targets``. Files that hosts fetch themselves are omitted."""
    found: dict[str, Artifact] = {}
    for target in targets:
        settings = read_file_settings(target.host)
        for artifact in target.artifacts:
            if not settings.fetches(artifact):
                found.setdefault(f"{artifact.sha256}/{artifact.file}", artifact)
    return tuple(found.values())


def refuse_secrets(address: str, targets: Iterable[TargetHost], password: Secret | None) -> bool:
    """Return whether work on ``targets`` needs a secret.

    Raises ``InputError`` if a secret would be sent without TLS.
    """
    found = next(((target.name, name) for target in targets if (name := named(target, password))), None)
    if found and not address.startswith(TLS):
        host, name = found
        raise InputError(
            f"{host} needs {name}, and secrets are sent to workers only over TLS; use a scheduler at tls://…, or make "
            "the secret unnecessary (sudo without a password, keys on the workers or an ssh-agent)",
            OPTION,
        )
    return found is not None


def refuse_holding(address: str, archive: SiteArchive, roster: Roster, targets: Iterable[TargetHost]) -> None:
    """Raise ``InputError`` if a file of the site contains a secret of ``targets``, and the file would be sent without
    TLS.
    """
    if address.startswith(TLS):
        return
    known = (secret.reveal() for secret in secrets_in(roster.inventory.hosts.values(), targets))
    if file := holding(archive, (text for text in known if len(text) >= MIN_INLINE)):
        raise InputError(
            f"{file} contains a password of the inventory, and secrets are sent to workers only over TLS; use a "
            "scheduler at tls://…, or keep the password only in the inventory",
            str(roster.site.root),
        )


def check(client: Client, address: str, demands: Demands, targets: Iterable[TargetHost]) -> None:
    """Check the scheduler, its workers, and the addresses of ``targets``. Raises ``InputErrors`` with all problems."""
    workers = tuple(in_time(client.nthreads, ANSWER_S) or ())
    if not workers:
        raise InputError(f"{address} has no worker; start one with `dask worker {address}`", OPTION)
    machines, errors = ask_each(client, workers, this_machine, demands.artifacts)
    mistakes = [
        InputError(f"the worker {each} cannot be used: it {why}")
        for each, why in misfits(demands, machines, errors).items()
    ]
    scheduler, trouble = _scheduler(client)
    unfit = misfits(replace(demands, tls=False), scheduler, trouble).values()
    mistakes += [InputError(f"the scheduler {address} cannot be used: it {why}") for why in unfit]
    mistakes += elsewhere(targets, demands.ours, machines)
    if mistakes:
        raise InputErrors(mistakes)


def _scheduler(client: Client) -> tuple[Mapping[str, Machine], Mapping[str, BaseException]]:
    """Return the software of the scheduler, or the error of the request. The scheduler unpickles tasks, and so needs
    the same packages as the workers.
    """
    threads = DaemonThreads(1, "dask")
    future: Future[Machine] = threads.submit(client.run_on_scheduler, this_machine)
    try:
        return {"": future.result(ANSWER_S)}, {}
    except Exception as error:  # noqa: BLE001 - any error makes the scheduler unfit
        return {}, {"": error}


def elsewhere(targets: Iterable[TargetHost], ours: Machine, others: Mapping[str, Machine]) -> Iterator[InputError]:
    """Yield an error for each of ``targets`` whose address means another machine on a worker than on this machine.

    ``ours`` is the present process; ``others`` are the workers, by name.
    """
    away = [name for name, machine in others.items() if machine.machine != ours.machine]
    for target in targets:
        if target.host.local:
            yield InputError(
                f"{target.name} is this machine (ansible_connection: local), but a worker would apply its plan to "
                "itself; exclude the host, and provision it without --executor"
            )
        elif away and is_loopback(target.host.address or target.name):
            yield InputError(
                f"{target.name}: the worker {away[0]} would connect to itself, because it has the address "
                f"{target.host.address or target.name}; set an address that workers can reach"
            )


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster that is fit for the hosts of a run."""

    client: Client
    address: str
    demands: Demands
    archive: SiteArchive
    roles: tuple[str, ...] = ()
    password: Secret | None = field(default=None, repr=False)


@contextmanager
def opened(address: str, roster: Roster, targets: Targets, password: Secret | None) -> Iterator[Cluster]:
    """Connect to the scheduler at ``address``, and check its workers. Raises ``InputError`` if the workers
    are unfit.
    """
    secret = refuse_secrets(address, targets, password)
    archive = pack(roster)
    refuse_holding(address, archive, roster, targets)
    with connected(address, "hostwright") as client:
        demands = Demands(this_machine(), files_of(targets), tls=secret)
        check(client, address, demands, targets)
        yield Cluster(client, address, demands, archive, targets.roles, password)
