"""The limits of a run: how many hosts at once, which ones first, how many may fail; and, from these, who begins next.

Nothing here touches a host, a thread or a clock.
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

MAX_PARALLEL = 192  #: our estimate: with more, this machine's cores are the limit, not the hosts; each takes 0.6 MB
FILES_PER_HOST = 4  #: a socket, and what paramiko and an artifact's stream need beside it
FILES_KEPT = 64  #: for everything that is not a host: the journal, the view, the artifacts

#: Our choice: of a batch, one slot in so many may be lent before its host is named silent. A host that hangs keeps no
#: other waiting, and where a network stands still for seconds, few more than a batch are in work when it goes on.
LENT_EARLY = 4

STOPPED_BY_OPERATOR = "stopped by the operator"
LEFT_ALONE = "stopped while it was being connected to; nothing was begun there"

_AMOUNT = re.compile(r"([0-9]{1,9})|([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


def window(hosts: int) -> int:
    """How many hosts are worked on at once: all, bounded by ``MAX_PARALLEL`` and by the open files that are allowed."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return max(1, min(hosts, MAX_PARALLEL))
    return max(1, min(hosts, MAX_PARALLEL, (files - FILES_KEPT) // FILES_PER_HOST))


@dataclass(frozen=True, slots=True)
class Limits:
    """The first ``canary`` hosts go before all others, ``batch`` are in work at once, ``max_fail`` of them may fail."""

    canary: int
    batch: int
    max_fail: int


def read_limits(request: Request, hosts: int, most: int | None = None) -> Limits:
    """The limits of a run of so many hosts, from ``--canary``, ``--batch`` and ``--max-fail``. At most ``most`` are
    worked on at once, by default as many as this machine can (``window``).

    Each is ``""`` (no canary; as many at once as can be; any number may fail), a number of hosts, or a share of the
    run's hosts such as ``10%``. Shares of ``canary`` and ``batch`` are rounded up, so that they are at least one host;
    a share of ``max_fail`` is rounded down. Raises ``InputError`` that names the option.

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
    """A number of hosts or a share of them, exactly; ``None`` when nothing was said."""
    if not text.strip():
        return None
    match = _AMOUNT.fullmatch(text.strip())
    if not match or (match[2] and Fraction(match[2]) > 100):
        raise InputError(f"found {text!r}, expected a number of hosts such as 5, or a share from 0% to 100%", option)
    return Fraction(match[1]) if match[1] else Fraction(match[2]) * hosts / 100


class Scheduler:
    """The course of one run: which hosts have not begun, are in work, or failed; it decides which begin next.

    Not thread-safe. ``ceiling`` bounds the hosts in work even where slots were lent; it may change meanwhile, as
    workers come and go.
    """

    def __init__(self, names: Iterable[str], limits: Limits, ceiling: int):
        order = tuple(dict.fromkeys(names))
        self.because = ""  #: why no further host begins; empty while the run goes on
        self.failures = 0  #: hosts that failed or could not be reached; a locked host is neither
        self._max_fail = limits.max_fail
        self._batch = max(1, limits.batch)
        self.ceiling = ceiling
        self._waiting = deque(order)
        self._running: dict[str, None] = {}
        self._canaries = set(order[: limits.canary])
        self._over_budget = False

    @property
    def running(self) -> tuple[str, ...]:
        """The hosts in work, the one that began first before the others."""
        return tuple(self._running)

    @property
    def untouched(self) -> tuple[str, ...]:
        """The hosts that have not begun, in their order."""
        return tuple(self._waiting)

    @property
    def over(self) -> bool:
        """Whether nobody is in work and nobody will begin."""
        return not self._running and (bool(self.because) or not self._waiting)

    def begin(self, silent: Collection[str], not_responding: Collection[str] = ()) -> tuple[str, ...]:
        """The hosts that begin now. ``silent`` names those that do not answer: their slots are lent to others; so are
        a few slots of those that are ``not_responding``, of which nothing has come since they are being connected to.
        """
        begun = []
        while self._waiting and self._may_begin(self._waiting[0], silent, not_responding):
            begun.append(self._waiting.popleft())
            self._running[begun[-1]] = None
        return tuple(begun)

    def _may_begin(self, host: str, silent: Collection[str], not_responding: Collection[str]) -> bool:
        """Whether there is a slot for this host.

        A slot is lent only as long as the failure budget can bear that every silent host fails: when a whole network
        is gone, the run must not walk into it host by host. Canaries are waited for.
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
        """A host in work has ended: ``failed``, ``locked``, ``unreachable`` and ``stopped`` are results of
        ``events.RESULTS`` that bear on the others; any other is good. For a locked canary, the next host is one.
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
                self.because = f"the failure budget is spent: {failed} failed, at most {self._max_fail} may"
        elif result == "stopped":
            self.halt(STOPPED_BY_OPERATOR)
        else:
            self._canaries.discard(host)

    def _replace_canary(self, host: str) -> None:
        """Let the next host be a canary in the place of one that was left as it was."""
        if host in self._canaries:
            self._canaries.remove(host)
            self._canaries.update([name for name in self._waiting if name not in self._canaries][:1])

    def halt(self, because: str) -> None:
        """No further host begins; the first reason stands."""
        self.because = self.because or because
