"""Runs work on many hosts in parallel; no host waits for another.

One loop in the caller's thread decides on which host work begins and when the run stops. An executor (``HostExecutor``)
works on the hosts: threads of this process, or workers on other machines. Futures and signals only put messages into
the loop's inbox, so no lock is needed and no interruption is lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hostwright.apply.events import Emit, HostEnded
from hostwright.apply.executors.executor import HostExecutor, WorkEnded
from hostwright.apply.executors.signals import interruptions
from hostwright.apply.executors.threads import DaemonThreads
from hostwright.apply.rollout.limits import LEFT_ALONE, STOPPED_BY_OPERATOR, Limits, Scheduler, window
from hostwright.common.errors import (
    ExecutorLost,
    HostError,
    HostwrightError,
    Locked,
    SeveralFailed,
    Stopped,
    Unreachable,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

TICK_S = 0.1  #: seconds between two checks for hosts that send no data
CUT_S = 2.0  #: time limit in seconds for threads to end after the connections of the threads were closed

CUT_OFF = "cut off before its end; a running job continues, and the next run re-attaches to it"
UNENDED = "not done when the operator stopped"  #: error text of an interrupted host in a run that changes nothing

NOTHING_CHANGED = "stopped; nothing was changed"
BROKEN_OFF = "an internal error of Hostwright ended the run"


@dataclass(frozen=True, slots=True)
class Results(Generic[T]):
    """The value or the error of the work on each host that began. ``names`` are all hosts, in order.

    ``untouched`` are the hosts on which no work began, because the run had stopped. ``stopped_because`` is the reason
    for the stop, and is empty if the run covered all hosts.
    """

    values: tuple[T, ...]
    errors: tuple[HostError, ...]
    untouched: tuple[str, ...] = ()
    stopped_because: str = ""
    names: tuple[str, ...] = ()


class Interrupted(KeyboardInterrupt):
    """The operator interrupted the work on hosts.

    ``results`` are the results so far: a host with unfinished work has ``Stopped`` among the errors. ``ended`` is the
    value that the interrupted function would have returned for these results.
    """

    def __init__(self, results: Results[Any]):
        super().__init__("stopped by the operator")
        self.results = results
        self.ended: Any = results


def result_of(error: HostError) -> str:
    """Return the result that stands for ``error``: ``locked``, ``unreachable``, ``stopped`` or ``failed``.

    If several roles of a host failed, the worst result counts.
    """
    if isinstance(error, SeveralFailed):
        kinds = {result_of(cause) if isinstance(cause, HostError) else "failed" for cause in error.errors}
        return next(kind for kind in ("failed", "unreachable", "stopped", "locked") if kind in kinds)
    if isinstance(error, Unreachable):
        return "unreachable"
    if isinstance(error, Locked):
        return "locked"
    return "stopped" if isinstance(error, Stopped) else "failed"


def on_each(
    names: Sequence[str],
    work: Callable[[str], T],
    *,
    stop: Callable[[], None],
    at_once: int = 0,
    on_result: Callable[[T | HostError], None] = lambda _: None,
) -> Results[T]:
    """Call ``work(host)`` for each host in parallel. An error of one host is recorded and does not stop other hosts.

    ``on_result`` receives each result at once, except for hosts that Ctrl-C interrupts. ``at_once`` limits the number
    of parallel hosts; 0 means ``window``.

    On Ctrl-C, work on no more hosts begins, ``stop`` is called to close the connections, and ``Interrupted`` is raised;
    jobs on the hosts continue. An unexpected error becomes an ``Unforeseen`` error of the host.
    """
    most = window(len(names))
    limits = Limits(canary=0, batch=min(at_once or most, most), max_fail=len(names))
    return _Rollout(
        names, work, limits, emit=lambda _: None, stop=stop, on_interrupt=None, silent=_nobody, on_result=on_result
    ).run()


def _nobody() -> Collection[str]:
    return ()


def roll_out(
    names: Sequence[str],
    work: Callable[[str], T],
    *,
    limits: Limits,
    emit: Emit,
    stop: Callable[[], None],
    on_interrupt: Callable[[], None],
    detach: Callable[[], Collection[str]] = _nobody,
    silent: Callable[[], Collection[str]] = _nobody,
    not_responding: Callable[[], Collection[str]] = _nobody,
    result: Callable[[T], str] = lambda _: "changed",
    executor: HostExecutor | None = None,
) -> Results[T]:
    """Call ``work(host)`` for each host: first the canaries, then a sliding window over the others.

    ``executor`` calls ``work``; the default is threads of this process, up to ``window``. ``result`` maps a value of
    ``work`` to one of ``events.RESULTS``: a value may also be a failure.

    If too many hosts or a canary fail, no more hosts begin, and the running hosts finish. ``work`` itself emits
    ``HostEnded`` for a good end; for any other end, ``emit`` receives ``HostEnded``. Slots of ``silent()`` hosts
    (``Silence.hosts``) and ``not_responding()`` hosts (``Connections.not_responding``) are released to others
    (``Scheduler.begin``).

    The first Ctrl-C or SIGTERM calls ``on_interrupt()``, which must make ``work`` raise ``Stopped`` soon. The function
    then waits for the running hosts, except the hosts that ``detach()`` returns. The second signal calls ``stop()`` to
    close the connections, and raises ``Interrupted`` without waiting for threads. An unexpected error becomes an
    ``Unforeseen`` error of the host.
    """
    run = _Rollout(
        names, work, limits, emit=emit, stop=stop, on_interrupt=on_interrupt, detach=detach, silent=silent,
        not_responding=not_responding, result=result, executor=executor,
    )  # fmt: skip
    return run.run()


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """The message that Ctrl-C or SIGTERM was received."""


class _Rollout(Generic[T]):
    def __init__(
        self,
        names: Sequence[str],
        work: Callable[[str], T],
        limits: Limits,
        *,
        emit: Emit,
        stop: Callable[[], None],
        on_interrupt: Callable[[], None] | None,
        silent: Callable[[], Collection[str]],
        not_responding: Callable[[], Collection[str]] = _nobody,
        detach: Callable[[], Collection[str]] = _nobody,
        result: Callable[[T], str] = lambda _: "changed",
        on_result: Callable[[T | HostError], None] = lambda _: None,
        executor: HostExecutor | None = None,
    ):
        self._names = tuple(dict.fromkeys(names))
        self._executor: HostExecutor = executor or DaemonThreads(window(len(self._names)))
        self._scheduler = Scheduler(self._names, limits, self._executor.slots)
        self._work, self._emit, self._stop, self._on_interrupt, self._silent = work, emit, stop, on_interrupt, silent
        self._not_responding, self._detach, self._result, self._on_result = not_responding, detach, result, on_result
        self._inbox: SimpleQueue[WorkEnded[T] | _Interrupted] = SimpleQueue()
        self._values: dict[str, T] = {}
        self._errors: dict[str, HostError] = {}
        self._asked_to_stop = False
        self._listed = False

    def run(self) -> Results[T]:
        with interruptions(lambda: self._inbox.put(_Interrupted())):
            try:
                self._loop()
            except KeyboardInterrupt:
                self._cut(STOPPED_BY_OPERATOR)
                if self._on_interrupt is None:
                    self._errors.update({host: self._stopped(host) for host in self._scheduler.untouched})
                raise Interrupted(self._results()) from None
            except BaseException:
                self._cut(BROKEN_OFF)
                raise
        # A remaining item in the inbox is a late interrupt by the operator.
        if not (self._inbox.empty() or self._asked_to_stop):
            if self._on_interrupt is None:
                self._scheduler.halt(STOPPED_BY_OPERATOR)
                raise Interrupted(self._results())
            self._interrupt()
        return self._results()

    def _results(self) -> Results[T]:
        return Results(
            tuple(self._values[name] for name in self._names if name in self._values),
            tuple(self._errors[name] for name in self._names if name in self._errors),
            self._scheduler.untouched,
            self._scheduler.because,
            self._names,
        )

    def _loop(self) -> None:
        while not self._scheduler.over:
            self._scheduler.ceiling = self._executor.slots
            for host in self._scheduler.begin(self._silent(), self._not_responding()):
                self._executor.submit(self._work, host).add_done_callback(partial(self._note_end, host))
            message = self._next()
            if message is not None:
                self._take(message)

    def _note_end(self, host: str, future: Future[T]) -> None:
        """Queue the end of the work on ``host``. Any thread may call this."""
        self._inbox.put(WorkEnded(host, future))

    def _next(self) -> WorkEnded[T] | _Interrupted | None:
        try:
            message = self._inbox.get(timeout=TICK_S)
        except Empty:
            return None
        late = isinstance(message, WorkEnded) and message.host not in self._scheduler.running
        return None if late else message

    def _take(self, message: WorkEnded[T] | _Interrupted) -> None:
        if isinstance(message, _Interrupted):
            self._interrupt()
        elif (error := message.error) is not None:
            self._fail(message.host, error)
        else:
            value = message.future.result()
            self._values[message.host] = value
            self._scheduler.end(message.host, self._result(value))
            self._on_result(value)
        self._list_untouched()

    def _fail(self, host: str, error: BaseException) -> None:
        if isinstance(error, ExecutorLost):
            self._scheduler.halt(error.because)
        if not isinstance(error, HostwrightError):
            self._scheduler.halt(BROKEN_OFF)
        result, sentence = _verdict(error)
        self._scheduler.end(host, result)
        self._emit(HostEnded(host, result, sentence))
        if not isinstance(error, HostwrightError):
            raise error
        self._errors[host] = _of_host(host, error, sentence)
        self._on_result(self._errors[host])

    def _interrupt(self) -> None:
        if self._on_interrupt is None or self._asked_to_stop:
            raise KeyboardInterrupt
        self._asked_to_stop = True
        self._scheduler.halt(STOPPED_BY_OPERATOR)
        self._on_interrupt()
        alone = self._detach()
        for host in (host for host in self._scheduler.running if host in alone):
            self._scheduler.end(host, "stopped")
            self._end_cut(host, Stopped(host, LEFT_ALONE))

    def _list_untouched(self) -> None:
        if self._scheduler.because and not self._listed:
            self._listed = True
            for host in self._scheduler.untouched:
                self._emit(HostEnded(host, "untouched", self._scheduler.because))

    def _cut(self, because: str) -> None:
        """Close the connections, wait up to ``CUT_S``, and set the result of every host. Another Ctrl-C
        ends the wait.
        """
        self._scheduler.halt(because)
        cutter = threading.Thread(target=self._stop, name="cut", daemon=True)
        cutter.start()
        deadline_s = time.monotonic() + CUT_S
        while (self._scheduler.running or cutter.is_alive()) and time.monotonic() < deadline_s:
            message = self._next()
            if isinstance(message, _Interrupted):
                break
            if message is not None:
                self._take_cut(message)
        for host in self._scheduler.running:
            self._end_cut(host, self._stopped(host))
        self._list_untouched()

    def _take_cut(self, ended: WorkEnded[T]) -> None:
        host, error = ended.host, ended.error
        if error is not None:
            result, sentence = _verdict(error)
            by_itself = result == "failed" and isinstance(error, HostwrightError)
            self._scheduler.end(host, result)
            self._end_cut(host, _of_host(host, error, sentence) if by_itself else self._stopped(host))
        elif self._on_interrupt is None:  # A value that arrives after the connection was closed may be wrong.
            self._scheduler.end(host, "stopped")
            self._end_cut(host, self._stopped(host))
        else:
            self._values[host] = ended.future.result()
            self._scheduler.end(host, self._result(self._values[host]))

    def _stopped(self, host: str) -> Stopped:
        return Stopped(host, UNENDED if self._on_interrupt is None else CUT_OFF)

    def _end_cut(self, host: str, error: HostError) -> None:
        self._errors[host] = error
        self._emit(HostEnded(host, result_of(error), error.sentence))


def _of_host(host: str, error: BaseException, sentence: str) -> HostError:
    if isinstance(error, HostError):
        return error
    ours = HostError(host, sentence)
    ours.lead = error.lead if isinstance(error, HostwrightError) else ""
    return ours


def _verdict(error: BaseException) -> tuple[str, str]:
    if isinstance(error, HostError):
        return result_of(error), error.sentence
    if isinstance(error, HostwrightError):
        return "failed", str(error)
    return "failed", f"internal error of Hostwright: {error!r}"
