"""Base classes of the executors that work on hosts: ``concurrent.futures.Executor`` with a number of slots."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from hostwright.common.untrusted import guarded

T = TypeVar("T")


class HostExecutor(Executor):
    """An executor for work on hosts: ``submit(work, host)`` returns the future of ``work(host)``."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of hosts on which the executor can work at the same time."""


class RunExecutor(HostExecutor):
    """An executor on other machines. The context of the executor sets up the workers, and at the end releases them."""

    @abstractmethod
    def cut(self) -> None:
        """Release every host at once. Running jobs on the hosts continue."""


@dataclass(frozen=True, slots=True)
class WorkEnded(Generic[T]):
    """The end of the work on ``host``: ``future`` has the result or the exception."""

    host: str
    future: Future[T]

    @property
    def error(self) -> BaseException | None:
        """The exception that the work raised; ``None`` if the work succeeded.

        An unexpected exception is converted to an error of the host.
        """
        try:
            with guarded(self.host):
                self.future.result()
        except BaseException as error:  # noqa: BLE001 - handled by the loop
            return error
        return None
