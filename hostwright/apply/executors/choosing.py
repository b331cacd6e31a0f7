"""Chooses the executor of a run: threads on this machine, or workers on other machines (an optional package)."""

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

PROVE = f"proofs run only from this machine; provision without --prove, then run {Command('prove')}"


class Workers(Protocol):
    """The functions that each executor module in ``EXTRAS`` must have. The workers of these executors run on other
    machines.
    """

    def executor_for(
        self, address: str, roster: Roster, targets: Targets, password: Secret | None
    ) -> AbstractContextManager[OpenExecutor]:
        """Return an executor on the workers of the scheduler ``address``.

        Raises ``InputError`` if the workers cannot work on these hosts.
        """

    def take_over(self, address: str, run: RunSummary, secrets: Iterable[Secret]) -> None:
        """Complete the journal of ``run`` after the run's own machine died, and make the workers release
        their hosts.
        """


#: value of ``--executor`` → module of the executor, and packages that must be installed for this executor
EXTRAS = {"dask": ("hostwright.apply.executors.cluster.cluster", ("dask", "distributed"))}


@contextmanager
def executor_for(
    roster: Roster, targets: Targets, request: Request, password: Secret | None
) -> Iterator[OpenExecutor | None]:
    """Yield the executor for the hosts in ``targets``. ``None`` stands for threads on this machine.

    Raises ``InputError``, before any change of a host, if the requested executor cannot work on these hosts.
    """
    workers = workers_of(request)
    if workers is None:
        yield None
        return
    if request.prove:
        raise InputError(PROVE, "--prove")
    with workers.executor_for(request.scheduler, roster, targets, password) as open_executor:
        yield open_executor


def take_over_left(run: RunSummary, roster: Roster, request: Request) -> None:
    """Complete the journal of a run whose own machine died, and make the run's workers release their hosts.

    Does nothing for other runs (see ``is_left``). Raises ``InputError`` if the workers do not answer.
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
    """Return whether a run used workers, and the run's own machine died before the run ended."""
    from hostwright.apply.journal.records import RUNNING

    return run.header.options.get("executor") in EXTRAS and run.status is None and run.state != RUNNING


def workers_of(request: Request) -> Workers | None:
    """Return the module of the requested executor; ``None`` for threads on this machine.

    Raises ``InputError`` if an option or a package for this executor is missing.
    """
    name, option = request.executor, f"--executor {request.executor}"
    if name not in EXTRAS:
        if request.scheduler and not name:
            raise InputError("requires a Dask cluster as executor; pass --executor dask", "--scheduler")
        return None
    if not request.scheduler:
        raise InputError("requires the address of the scheduler; pass --scheduler tls://HOST:8786", option)
    module, packages = EXTRAS[name]
    try:
        return cast("Workers", import_module(module))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        sentence = f"the package {error.name} is not installed; run `pip install {error.name}`"
        raise InputError(sentence, option) from error
