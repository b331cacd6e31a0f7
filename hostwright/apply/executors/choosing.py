"""Chooses who works on the hosts of a run: this machine, or the workers that an optional package brings."""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from hostwright.common.command import Command
from hostwright.common.errors import InputError
from hostwright.common.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hostwright.apply.journal.reading import RunSummary
    from hostwright.apply.rollout.applying import OpenExecutor
    from hostwright.common.secret import Secret
    from hostwright.plan.targets import Roster, Targets

PROVE = f"proofs are run from this machine: provision without --prove, then run {Command('prove')}"


class Workers(Protocol):
    """The functions of a module with an executor of its own."""

    def executor_for(
        self, address: str, roster: Roster, targets: Targets, password: Secret | None
    ) -> AbstractContextManager[OpenExecutor]:
        """Connect to the workers. Raises ``InputError`` if they cannot work on these hosts."""

    def take_over(self, address: str, run: RunSummary, secrets: Iterable[Secret]) -> None:
        """Have workers let go of the hosts of a run whose machine died, and complete its journal."""


#: by the value of ``--executor``: the module, and the packages that the extra of the same name installs
EXTRAS = {"dask": ("hostwright.apply.executors.cluster.cluster", ("dask", "distributed"))}


@contextmanager
def executor_for(
    roster: Roster, targets: Targets, request: Request, password: Secret | None
) -> Iterator[OpenExecutor | None]:
    """The executor of these hosts; ``None``: this machine. Raises ``InputError`` before any host is touched."""
    workers = workers_of(request)
    if workers is None:
        yield None
        return
    if request.prove:
        raise InputError(PROVE, "--prove")
    with workers.executor_for(request.scheduler, roster, targets, password) as open_executor:
        yield open_executor


def take_over_left(run: RunSummary, roster: Roster, request: Request) -> None:
    """If workers had the hosts of a run whose machine died, have them let go, and complete its journal.

    Raises ``InputError`` if they do not answer.
    """
    from hostwright.apply.journal.redaction import secrets_in

    if not is_left(run):
        return
    if not (request.executor or request.scheduler):
        former = run.header.options
        request = replace(request, executor=former["executor"], scheduler=str(former.get("scheduler", "")))
    if workers := workers_of(request):
        workers.take_over(request.scheduler, run, secrets_in(roster.inventory.hosts.values()))


def is_left(run: RunSummary) -> bool:
    """Whether workers had the hosts of a run, and its machine died before it ended."""
    from hostwright.apply.journal.records import RUNNING

    return run.header.options.get("executor") in EXTRAS and run.status is None and run.state != RUNNING


def workers_of(request: Request) -> Workers | None:
    """The module of the executor that was asked for; ``None``: this machine. Raises ``InputError``."""
    name, option = request.executor, f"--executor {request.executor}"
    if name not in EXTRAS:
        if request.scheduler and not name:
            raise InputError("it is the scheduler of a Dask cluster: give --executor dask as well", "--scheduler")
        return None
    if not request.scheduler:
        raise InputError("name the cluster's scheduler: --scheduler tls://HOST:8786", option)
    module, packages = EXTRAS[name]
    try:
        return cast("Workers", import_module(module))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        sentence = f"the package {error.name} is not installed here: pip install {error.name}"
        raise InputError(sentence, option) from error
