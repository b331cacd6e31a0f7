"""Many hosts side by side: each on its own, none waiting for another.

One loop decides, in the caller's thread: which host begins, when the run stops. An executor (``HostExecutor``) works on
the hosts: threads of this process, or workers on other machines. The ends of its futures, Ctrl-C and SIGTERM only put a
message into the loop's inbox: nothing has to be locked, and no interruption is lost.
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

TICK_S = 0.1  #: how often the loop looks for silent hosts while nothing happens
CUT_S = 2.0  #: how long threads may take to end once their connections are cut; then they are left behind

CUT_OFF = "cut off before its end; a job that runs on it continues, and the next run re-attaches to it"
UNENDED = "not done when the operator stopped"  #: a host that was only looked at, or asked for one thing

NOTHING_CHANGED = "stopped; nothing was changed"
BROKEN_OFF = "an error of Hostwright itself ended the run"


@dataclass(frozen=True, slots=True)
class Results(Generic[T]):
    """The result of each host: a value, the error that ended it, or nothing. Each in the order of ``names``.

    ``untouched`` are the hosts that were never begun, since the run had stopped; ``stopped_because`` says why, and is
    empty when the run went over all hosts.
    """

    values: tuple[T, ...]
    errors: tuple[HostError, ...]
    untouched: tuple[str, ...] = ()
    stopped_because: str = ""
    names: tuple[str, ...] = ()


class Interrupted(KeyboardInterrupt):
    """The operator ended the work on hosts before its end.

    ``results`` are those of each host until then: a host in work has ``Stopped`` among the errors. ``ended`` is what
    the work would have returned, made of these results.
    """

    def __init__(self, results: Results[Any]):
        super().__init__("stopped by the operator")
        self.results = results
        self.ended: Any = results


def result_of(error: HostError) -> str:
    """Which of ``events.RESULTS`` an error is: ``locked``, ``unreachable``, ``stopped`` or ``failed``.

    Where several roles of a host failed, the worst counts: a lost connection or a stop comes over all of them at once.
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
    """Call ``work(host)`` for each host, side by side. An error of one host is kept and stops no other. ``on_result``
    gets each result as soon as it is there, but none of those that Ctrl-C made.

    ``at_once`` bounds how many at a time, below what this machine can hold open (``window``); 0 is as many as that.

    On Ctrl-C no further host is started, and ``stop`` is called to cut the connections; the jobs on the hosts go on,
    and ``Interrupted`` is raised. An error that nobody foresaw is ``Unforeseen``, and its host's.
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
    """Call ``work(host)`` for each host: the canaries first, then a sliding window over the others.

    ``executor`` calls it, by default threads of this process, as many as this machine can hold open (``window``).
    ``result`` says which of ``events.RESULTS`` a value of ``work`` is: a failure may be a value.

    When the failure budget is spent or a canary fails, no further host begins; those in work come to their end.
    ``work`` reports a good end itself; ``HostEnded`` for all others goes to ``emit``. ``silent()`` names the hosts that
    do not answer (``Silence.hosts``), ``not_responding()`` those of which nothing has come
    (``Connections.not_responding``); their slots are lent to others (``Scheduler.begin``).

    The first Ctrl-C or SIGTERM calls ``on_interrupt()``, which is to let ``work`` raise ``Stopped`` soon, and waits for
    the hosts in work, but not for those that ``detach()`` names: nothing is done on them any more. The second calls
    ``stop()`` to cut the connections and raises ``Interrupted``, whether the threads have ended or not. An error that
    nobody foresaw is ``Unforeseen``, and its host's.
    """
    run = _Rollout(
        names, work, limits, emit=emit, stop=stop, on_interrupt=on_interrupt, detach=detach, silent=silent,
        not_responding=not_responding, result=result, executor=executor,
    )  # fmt: skip
    return run.run()


@dataclass(frozen=True, slots=True)
class _Interrupted:
    """The operator wants an end."""


class _Rollout(Generic[T]):
    """One run over hosts, until ``run`` returns."""

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
        """Everything, to the end."""
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
        if not (self._inbox.empty() or self._asked_to_stop):  # it came after the last host's end
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
        """Called by whoever ended the host's work, in whatever thread."""
        self._inbox.put(WorkEnded(host, future))

    def _next(self) -> WorkEnded[T] | _Interrupted | None:
        """What came meanwhile; the end of a host that was left alone is no news."""
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
        """Once the run has stopped: say of each host that has not begun that it will not."""
        if self._scheduler.because and not self._listed:
            self._listed = True
            for host in self._scheduler.untouched:
                self._emit(HostEnded(host, "untouched", self._scheduler.because))

    def _cut(self, because: str) -> None:
        """Cut the connections, give the threads a moment, and account for every host. Another Ctrl-C ends the wait."""
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
        """The end of a host whose connection was cut."""
        host, error = ended.host, ended.error
        if error is not None:
            result, sentence = _verdict(error)
            by_itself = result == "failed" and isinstance(error, HostwrightError)
            self._scheduler.end(host, result)
            self._end_cut(host, _of_host(host, error, sentence) if by_itself else self._stopped(host))
        elif self._on_interrupt is None:  # its value may be what the cut made of it
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
    """The error as its host's."""
    if isinstance(error, HostError):
        return error
    ours = HostError(host, sentence)
    ours.lead = error.lead if isinstance(error, HostwrightError) else ""
    return ours


def _verdict(error: BaseException) -> tuple[str, str]:
    """How a host ended that raised this, and why: a result of ``events.RESULTS`` and a sentence."""
    if isinstance(error, HostError):
        return result_of(error), error.sentence
    if isinstance(error, HostwrightError):
        return "failed", str(error)
    return "failed", f"an error of Hostwright itself: {error!r}"
