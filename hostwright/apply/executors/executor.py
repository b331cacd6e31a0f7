"""What the loop of a run knows of who works on its hosts: an executor that takes them, and futures that end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hostwright.common.untrusted import guarded

T = TypeVar("T")


class HostExecutor(Protocol):
    """Works on a run's hosts: an executor of ``concurrent.futures`` that says how many it can work on now."""

    @property
    def slots(self) -> int:
        """How many hosts can be in work at this moment."""
        ...

    def submit(self, work: Callable[[str], T], host: str, /) -> Future[T]:
        """Have ``work(host)`` done; the future has what it returns or raises."""
        ...


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
