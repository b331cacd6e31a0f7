"""Base classes of the executors that work on hosts: ``concurrent.futures.Executor`` with a number of slots."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from hostwright.common.untrusted import guarded

T = TypeVar("T")


class HostExecutor(Executor):
    """Works on hosts: ``submit(work, host)`` returns the future of ``work(host)``."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """The number of hosts that the executor can work on at the same time."""


class RunExecutor(HostExecutor):
    """An executor on other machines. Its context connects to the workers and ends the run on them."""

    @abstractmethod
    def cut(self) -> None:
        """Release every host at once. Jobs that run on the hosts continue."""


@dataclass(frozen=True, slots=True)
class WorkEnded(Generic[T]):
    """The work on a host has ended: ``future`` is done."""

    host: str
    future: Future[T]

    @property
    def error(self) -> BaseException | None:
        """The exception that the work raised, if any. An unexpected exception is converted to an error of this host."""
        try:
            with guarded(self.host):
                self.future.result()
        except BaseException as error:  # noqa: BLE001 - handled by the loop
            return error
        return None
