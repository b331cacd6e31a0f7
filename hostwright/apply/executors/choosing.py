"""Who works on the hosts of a run, as its options say: this machine, or a cluster that is looked at first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.targets import Roster, Targets

if TYPE_CHECKING:
    from hostwright.apply.journal.reading import RunSummary
    from hostwright.apply.rollout.applying import OpenExecutor
    from hostwright.common.secret import Secret

PACKAGES = ("dask", "distributed")
PROVE = "proofs are run from this machine: provision without --prove, then run `invoke prove`"


def cluster_of(request: Request) -> str:
    """The address of the scheduler of the cluster that works on hosts; empty for this machine.

    Raises ``InputError``.
    """
    executor, scheduler = request.executor, request.scheduler
    if executor != "dask":
        if scheduler and not executor:
            raise InputError("it is the scheduler of a Dask cluster: give --executor dask as well", "--scheduler")
        return ""
    if not scheduler:
        raise InputError("name the cluster's scheduler: --scheduler tls://HOST:8786", "--executor dask")
    return scheduler


@contextmanager
def executor_for(
    roster: Roster, targets: Targets, request: Request, password: Secret | None
) -> Iterator[OpenExecutor | None]:
    """Who works on these hosts; ``None``: this machine. Raises ``InputError`` for a cluster that cannot, before any
    host is touched."""
    address = cluster_of(request)
    if not address:
        yield None
        return
    if request.prove:
        raise InputError(PROVE, "--prove")
    with _needing_dask():
        from hostwright.apply.executors.cluster.cluster import executor_of
        from hostwright.apply.executors.cluster.fitness import opened
    with opened(address, roster, targets, password) as cluster:
        yield partial(executor_of, cluster)


def take_over_left(run: RunSummary, roster: Roster, given: Request) -> None:
    """Where a run was given to a cluster and its machine died: the workers let go of its hosts, and what they recorded
    goes into its journal. Raises ``InputError`` where they cannot be asked."""
    from hostwright.apply.journal.redaction import secrets_in

    if not is_left(run):
        return
    address = cluster_of(given) or ("" if given.executor else str(run.header.options.get("scheduler", "")))
    if not address:
        return
    with _needing_dask():
        from hostwright.apply.executors.cluster.takeover import left_behind, take_over
    secrets = secrets_in(roster.inventory.hosts.values())
    take_over(run, partial(left_behind, address), secrets=secrets, warn=lambda _: None)


def is_left(run: RunSummary) -> bool:
    """Whether a run was given to a cluster, and its machine died before it ended."""
    from hostwright.apply.journal.records import RUNNING

    return bool(run.header.options.get("scheduler")) and run.status is None and run.state != RUNNING


@contextmanager
def _needing_dask() -> Iterator[None]:
    """Make one sentence of a package that is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        sentence = f"the package {error.name} is not installed here: pip install 'hostwright[dask]'"
        raise InputError(sentence, "--executor dask") from error
