"""Many hosts side by side: each on its own, none waiting for another."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Generic, TypeVar

from hostwright.errors import HostError, HostwrightError

T = TypeVar("T")

MAX_PARALLEL = 256  #: PEERS A1 row 7; beyond it the controller's cores bind, not the hosts
FILES_PER_HOST = 4  #: a socket, and what paramiko and an artifact's stream need beside it


def window(hosts: int) -> int:
    """How many hosts are worked on at once: all, bounded by ``MAX_PARALLEL`` and by the open files that are allowed."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(hosts, MAX_PARALLEL, (files - 64) // FILES_PER_HOST))


@dataclass(frozen=True, slots=True)
class Results(Generic[T]):
    """What came of each host: a value, or the error that ended it. Both in the order in which the hosts were given."""

    values: tuple[T, ...]
    errors: tuple[HostError, ...]


def on_each(names: Sequence[str], work: Callable[[str], T], *, stop: Callable[[], None]) -> Results[T]:
    """Call ``work(host)`` for each host, side by side. An error of one host is kept and stops no other.

    On Ctrl-C no further host is started, and ``stop`` is called to cut the connections, so that the threads end; the
    jobs on the hosts go on. An error that is not a host's (a bug, bad input) ends the run.
    """
    done: dict[str, T] = {}
    failed: dict[str, HostError] = {}
    with ThreadPoolExecutor(max_workers=window(len(names)), thread_name_prefix="host") as pool:
        futures = {pool.submit(work, name): name for name in names}
        try:
            for future in as_completed(futures):
                name = futures[future]
                error = future.exception()
                if error is None:
                    done[name] = future.result()
                elif isinstance(error, HostError):
                    failed[name] = error
                elif isinstance(error, HostwrightError):
                    failed[name] = HostError(name, str(error))
                else:
                    raise error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop()
            raise
    return Results(
        tuple(done[name] for name in names if name in done), tuple(failed[name] for name in names if name in failed)
    )
