"""The limits of a run (batch size, canaries, maximum failures), and the scheduler that chooses the next hosts.

This module connects to no host, starts no thread and reads no clock.
"""

from __future__ import annotations

import re
import resource
from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.common.text import count

#: maximum number of hosts in parallel (our estimate). With more hosts, this machine's cores are the limit.
MAX_PARALLEL = 192
FILES_PER_HOST = 4  #: number of open files that each host needs, for a socket, paramiko and an artifact
FILES_KEPT = 64  #: number of open files reserved for the journal, the display and the artifacts

#: number of slots in a batch for each slot that a silent host may release early (our choice). So a host that hangs does
#: not delay others.
LENT_EARLY = 4

STOPPED_BY_OPERATOR = "stopped by the operator"
LEFT_ALONE = "stopped during the first connection; nothing was changed"

_AMOUNT = re.compile(r"([0-9]{1,9})|([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


def window(hosts: int) -> int:
    """Return how many of ``hosts`` may run in parallel, by ``MAX_PARALLEL`` and the limit of open files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return max(1, min(hosts, MAX_PARALLEL))
    return max(1, min(hosts, MAX_PARALLEL, (files - FILES_KEPT) // FILES_PER_HOST))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run: ``canary`` hosts run before all others, ``batch`` run in parallel, ``max_fail`` may fail."""

    canary: int
    batch: int
    max_fail: int


def read_limits(request: Request, hosts: int, most: int | None = None) -> Limits:
    """Return the limits from ``--canary``, ``--batch`` and ``--max-fail`` for a run of ``hosts`` hosts.

    At most ``most`` hosts run in parallel; the default is ``window``. Each option is empty, a number of hosts, or a
    share such as ``10%``. Empty means: no canary, as many hosts in parallel as possible, any number may fail. Shares of
    ``canary`` and ``batch`` are rounded up, a share of ``max_fail`` down. Raises ``InputError`` that names an invalid
    option.

    >>> read_limits(Request(canary="1", batch="10%", max_fail="5%"), 42)
    Limits(canary=1, batch=5, max_fail=2)
    """
    first = _amount("--canary", request.canary, hosts)
    at_once = _amount("--batch", request.batch, hosts)
    failures = _amount("--max-fail", request.max_fail, hosts)
    if at_once == 0 and hosts:
        raise InputError(f"found {request.batch!r}, expected at least 1 host at once, such as 5 or 10%", "--batch")
    widest = max(1, window(hosts) if most is None else most)
    return Limits(
        canary=0 if first is None else min(ceil(first), hosts),
        batch=widest if at_once is None else max(1, min(ceil(at_once), widest)),
        max_fail=hosts if failures is None else min(floor(failures), hosts),
    )


def _amount(option: str, text: str, hosts: int) -> Fraction | None:
    if not text.strip():
        return None
    match = _AMOUNT.fullmatch(text.strip())
    if not match or (match[2] and Fraction(match[2]) > 100):
        raise InputError(f"found {text!r}, expected a number of hosts such as 5, or a share from 0% to 100%", option)
    return Fraction(match[1]) if match[1] else Fraction(match[2]) * hosts / 100


class Scheduler:
    """The waiting and running hosts of one run, and its failures so far. Chooses the hosts that begin next.

    Not thread-safe. ``ceiling`` limits the running hosts, and may change as workers join and leave.
    """

    def __init__(self, names: Iterable[str], limits: Limits, ceiling: int):
        order = tuple(dict.fromkeys(names))
        self.because = ""  #: reason why no further hosts begin; empty while the run continues
        self.failures = 0  #: number of failed and unreachable hosts; a locked host does not count
        self._max_fail = limits.max_fail
        self._batch = max(1, limits.batch)
        self.ceiling = ceiling
        self._waiting = deque(order)
        self._running: dict[str, None] = {}
        self._canaries = set(order[: limits.canary])
        self._over_budget = False

    @property
    def running(self) -> tuple[str, ...]:
        """The hosts on which work is running, in the order in which their work began."""
        return tuple(self._running)

    @property
    def untouched(self) -> tuple[str, ...]:
        """The hosts on which work has not begun, in the order in which it would begin."""
        return tuple(self._waiting)

    @property
    def over(self) -> bool:
        """Whether the run is over: no work is running on any host, and none will begin."""
        return not self._running and (bool(self.because) or not self._waiting)

    def begin(self, silent: Collection[str], not_responding: Collection[str] = ()) -> tuple[str, ...]:
        """Return the hosts on which work begins now, and count them as running.

        Other hosts may use the slots of ``silent`` hosts, and a few slots of ``not_responding`` hosts, which have sent
        nothing since the start of their connection.
        """
        begun = []
        while self._waiting and self._may_begin(self._waiting[0], silent, not_responding):
            begun.append(self._waiting.popleft())
            self._running[begun[-1]] = None
        return tuple(begun)

    def _may_begin(self, host: str, silent: Collection[str], not_responding: Collection[str]) -> bool:
        """Return whether ``host`` may begin: a slot of the batch is free, and no canary must come first.

        The slot of a silent host is released only if the run may continue when all silent hosts fail. So in a network
        outage, the run does not continue host by host. Slots of canaries are never released.
        """
        if self.because or len(self._running) >= self.ceiling:
            return False
        batch = min(self._batch, self.ceiling)
        if host in self._canaries:
            return len(self._running) < batch
        if self._canaries:
            return False
        early = sum(name in not_responding and name not in silent for name in self._running)
        lent = sum(name in silent for name in self._running) + min(early, batch // LENT_EARLY)
        lent = min(lent, self._max_fail - self.failures)
        return len(self._running) - lent < batch

    def end(self, host: str, result: str) -> None:
        """Record that the work on a running host ended with ``result``, one of ``events.RESULTS``.

        Only ``failed``, ``locked``, ``unreachable`` and ``stopped`` affect other hosts. After a locked canary, the next
        host becomes a canary.
        """
        del self._running[host]
        if result == "locked":
            self._replace_canary(host)
        elif result in ("failed", "unreachable"):
            self.failures += 1
            if host in self._canaries:
                self.halt(f"a canary failed: {host}")
            elif self._over_budget or (self.failures > self._max_fail and not self.because):
                self._over_budget = True
                failed = count(self.failures, "host")
                self.because = f"too many failures: {failed} failed, --max-fail allows {self._max_fail}"
        elif result == "stopped":
            self.halt(STOPPED_BY_OPERATOR)
        else:
            self._canaries.discard(host)

    def _replace_canary(self, host: str) -> None:
        if host in self._canaries:
            self._canaries.remove(host)
            self._canaries.update([name for name in self._waiting if name not in self._canaries][:1])

    def halt(self, because: str) -> None:
        """Begin no further hosts, for the reason ``because``. Only the first reason is kept."""
        self.because = self.because or because
