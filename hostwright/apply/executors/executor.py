"""The executors that work on the hosts of a run: those of ``concurrent.futures``, with a number of hosts at once."""

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
        """How many hosts it can work on now."""


class RunExecutor(HostExecutor):
    """An executor elsewhere, for one run; its context begins with the workers and ends with the run."""

    @abstractmethod
    def cut(self) -> None:
        """Let go of every host at once: what runs on them goes on."""


@dataclass(frozen=True, slots=True)
class WorkEnded(Generic[T]):
    """A host's work returned or raised: ``future`` is done."""

    host: str
    future: Future[T]

    @property
    def error(self) -> BaseException | None:
        """What it raised. What nobody foresaw is this host's error, and no other's."""
        try:
            with guarded(self.host):
                self.future.result()
        except BaseException as error:  # noqa: BLE001 - judged, and raised again if need be, by the loop
            return error
        return None
