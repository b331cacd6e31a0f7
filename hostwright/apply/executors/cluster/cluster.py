"""The workers of a Dask cluster as the executor of a run.

    with executor_for(address, roster, targets, password) as open_executor:  # only checks
        with open_executor(run) as executor:                                 # the run is recorded from here on
            roll_out(names, work, executor=executor, stop=executor.cut, …)

Each submitted host becomes a task of the cluster. One thread handles the messages of workers in order, another lists
the workers, and ``Heartbeats`` sends them the state of the run. Only workers that pass the checks receive hosts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

from hostwright.apply.delivery.sources.settings import files_by_http
from hostwright.apply.events import Note
from hostwright.apply.executors.cluster import session as sessions
from hostwright.apply.executors.cluster import takeover
from hostwright.apply.executors.cluster.client import ANSWER_S, CLOSE_S, ask_each, in_time, is_open, meaning_of
from hostwright.apply.executors.cluster.dispatch import Dispatch, HostAssignment
from hostwright.apply.executors.cluster.fitness import Cluster, misfits, opened, this_machine
from hostwright.apply.executors.cluster.heartbeats import Heartbeats
from hostwright.apply.executors.cluster.messages import Brief, Heartbeat, Message, Task, needed, of_workers, task_of
from hostwright.apply.executors.cluster.session import WorkerSession
from hostwright.apply.executors.cluster.sites import SiteArchive
from hostwright.apply.executors.executor import RunExecutor
from hostwright.apply.executors.threads import DaemonThreads
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.run import Run
from hostwright.common.command import Command
from hostwright.common.errors import HostwrightError
from hostwright.common.input.passwordcommand import get_all
from hostwright.common.text import count, short

if TYPE_CHECKING:
    from hostwright.apply.journal.reading import RunSummary
    from hostwright.apply.rollout.applying import OpenExecutor
    from hostwright.common.secret import Secret
    from hostwright.plan.targets import Roster, Targets

P = ParamSpec("P")
T = TypeVar("T")

LOOK_S = 1.0  #: seconds between two requests for the list of workers (our choice)
#: seconds without any worker or scheduler after which the run ends (our choice). Dask restarts a worker in seconds.
ALONE_S = 120.0
RECOVER_S = 5.0  #: seconds to wait for the recorded messages of a lost worker (our choice)
CUT_S = 1.5  #: seconds to wait until workers have received the request to release hosts, less than ``rollout.CUT_S``
OPEN = "anyone who can connect to %s can use the workers' logins to all hosts; enable TLS (tls://)"
NOBODY = "nobody"  #: address that stands for a worker while no worker is available
THEN = f"a running job on the host continues, and {Command('provision', resume='%s')} re-attaches to it"


@contextmanager
def executor_for(address: str, roster: Roster, targets: Targets, password: Secret | None) -> Iterator[OpenExecutor]:
    """Yield an executor on the workers of the scheduler ``address``. Implements ``choosing.Workers``."""
    with opened(address, roster, targets, password) as cluster:
        yield partial(ClusterExecutor, cluster)


def take_over(address: str, run: RunSummary, secrets: Iterable[Secret]) -> None:
    """Complete the journal of ``run`` after the run's own machine died. Implements ``choosing.Workers``."""
    takeover.take_over(run, partial(takeover.left_behind, address), secrets=secrets, warn=lambda _: None)


def brief_of(run: Run, roles: tuple[str, ...], archive: SiteArchive) -> Brief:
    """Return the description of ``run`` for its workers. ``roles`` are the requested roles.

    ``hostwright_files_address`` is not sent, because it is an address of this machine.
    """
    files = {host: replace(settings, address="") for host, settings in files_by_http(run.targets).items()}
    return Brief(run.stamp, run.verb, of_workers(run.request), roles, files, type(run.roster), archive)


class ClusterExecutor(RunExecutor):
    """The workers of a Dask cluster during one run.

    Entering the context sets up the workers, and raises ``HostwrightError`` if the setup fails.
    """

    def __init__(self, cluster: Cluster, run: Run):
        self._cluster, self._run = cluster, run
        self._brief = brief = brief_of(run, cluster.roles, cluster.archive)
        self._client, self._address = cluster.client, cluster.address
        self._executor = self._client.get_executor(pure=False)
        self._inbox: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._heartbeats = Heartbeats(self._client, brief.session, self._heartbeat, self._heard)
        self._dispatch = Dispatch(run, self._heartbeats.poke, recover=self._recover)
        self._known: dict[str, str] = {}  #: address of a checked worker → reason why the worker is unfit, or empty text
        self._workers: dict[str, int] = {}  #: address of an available worker → number of hosts that it accepts at once
        self._futures: dict[str, Future[Any]] = {}  #: host → future of the latest task for this host
        self._recovered: dict[str, list[Message]] = {}
        self._then = THEN % run.id
        self._lost = ""  #: reason why the run has no workers left; empty while the run continues
        self._over = threading.Event()

    @property
    def slots(self) -> int:
        """The number of hosts on which the workers can work at the same time."""
        # After the loss of all workers, one slot lets the run submit each host, so that the host fails with this
        # reason.
        return 1 if self._lost else sum(self._workers.values())

    def submit(self, fn: Callable[P, T], /, *args: P.args, **_: P.kwargs) -> Future[T]:  # noqa: ARG002
        """Send a host to the cluster. The name of the host is the first of ``args``; ``fn`` itself is not sent."""
        future: Future[Outcome] = Future()
        host = str(args[0])
        target = self._run.targets.by_name[host]
        try:
            self._run.refuse(host)
            agreed = self._run.consent.plans.get(host)
            given, texts = task_of(self._brief.session, target, self._cluster.password, agreed)
        except HostwrightError as error:
            future.set_exception(error)
        else:
            self._dispatch.add(HostAssignment(host, future, partial(self._send, host, given), texts))
            self._do(partial(self._send, host, given))
        return cast("Future[T]", future)

    def cut(self) -> None:
        """Make every worker release its hosts. Wait up to ``CUT_S`` until the workers have received this request.

        Jobs on the hosts continue.
        """
        self._do(self._dispatch.cut)
        done = threading.Event()
        self._do(done.set)
        if done.wait(CUT_S):
            self._heartbeats.wait_until_sent(CUT_S)

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self.shutdown()
            raise
        return self

    def _begin(self) -> None:
        get_all(secret for target in self._run.targets for secret in needed(target, self._cluster.password))
        self._client.subscribe_topic(self._brief.session, self._hear)
        threading.Thread(target=self._take, name="cluster", daemon=True).start()
        ready = DaemonThreads(1, "dask").submit(
            self._client.register_plugin, WorkerSession(self._brief), name=self._brief.session
        )
        try:
            ready.result(ANSWER_S)
        except Exception as error:
            why = f"{type(error).__name__}: {short(str(error))}".rstrip(": ")
            raise HostwrightError(f"the workers of {self._address} cannot be set up: {why}") from error
        self._list()
        threading.Thread(target=self._watch, name="workers", daemon=True).start()
        workers = count(len(self._workers), "worker")
        self._note(f"{workers} of {self._address} can work on {count(self.slots, 'host')} at once")
        if is_open(self._address):
            self._note(OPEN % self._address)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """End the run. Workers release the run's hosts and delete their records of the run."""
        self._over.set()
        self._heartbeats.end()
        self._inbox.put(None)
        if self._lost:
            return
        with suppress(ValueError):
            self._client.unsubscribe_topic(self._brief.session)
        threads = DaemonThreads(2, "dask")
        forgotten = threads.submit(self._client.run, sessions.forget, self._run.id, on_error="ignore")
        left = threads.submit(self._client.unregister_worker_plugin, self._brief.session)
        futures.wait([forgotten, left], CLOSE_S)

    # -------------------- The thread that handles messages calls the methods below.

    def _take(self) -> None:
        """Run the calls in ``_inbox`` in order. If a call raises an error, the run ends with that error."""
        while call := self._inbox.get():
            try:
                call()
            except BaseException as error:  # noqa: BLE001 - raised by the loop
                self._dispatch.fail(error)

    def _send(self, host: str, given: Task) -> None:
        if self._lost:
            self._dispatch.lose(self._lost, self._then)
            return
        workers = list(self._workers)
        sent = self._dispatch.sent(host, workers or (NOBODY,))
        if (before := self._futures.pop(host, None)) is not None:
            before.cancel()
        if not workers:
            return  # The host is sent again when a worker becomes available.
        try:
            future = self._executor.submit(sessions.run_task, given, workers=workers)
        except Exception as error:  # noqa: BLE001 - the client may be closing
            self._dispatch.task_ended(host, meaning_of(host, error, self._then))
            return
        self._futures[host] = future
        future.add_done_callback(lambda future: self._do(partial(self._task_ended, host, sent, future)))

    def _task_ended(self, host: str, sent: int, future: Future[Any]) -> None:
        if not self._dispatch.is_current(host, sent):
            return
        self._futures.pop(host, None)
        try:
            error = future.exception(0)
        except CancelledError:
            self._lose(f"the connection to the scheduler {self._address} was lost")
        else:
            self._dispatch.task_ended(host, None if error is None else meaning_of(host, error, self._then))

    def _receive(self, logged: Mapping[str, Any]) -> None:
        self._dispatch.take(Message.unpacked(logged["body"]))

    def _lose(self, because: str) -> None:
        self._lost = self._lost or because
        self._dispatch.lose(self._lost, self._then)

    def _strand(self) -> None:
        if self._workers:
            self._dispatch.strand(self._workers)

    def _note(self, sentence: str) -> None:
        self._run.emit(Note("", sentence))

    def _recover(self, worker: str, known: Mapping[str, int]) -> Iterable[Message]:
        if worker not in self._recovered:
            place = worker.rpartition(":")[0]
            near = [each for each in self._workers if each != worker and each.rpartition(":")[0] == place][:1]
            numbers = {**self._dispatch.known(), **known}
            answers, _ = ask_each(self._client, near, sessions.kept, self._run.id, numbers, timeout_s=RECOVER_S)
            self._recovered[worker] = [message for messages in answers.values() for message in messages]
        return [message for message in self._recovered[worker] if message.attempt in known]

    # -------------------- Other threads call the methods below.

    def _do(self, call: Callable[[], None]) -> None:
        self._inbox.put(call)

    def _hear(self, event: tuple[float, Any]) -> None:
        self._do(partial(self._receive, event[1]))

    def _heartbeat(self, worker: str) -> Heartbeat:
        return self._dispatch.heartbeat(worker)

    def _heard(self, worker: str, heartbeat: Heartbeat) -> None:
        self._dispatch.heard(worker, heartbeat)

    def _watch(self) -> None:
        """List the available workers periodically. End the run if none were available for ``ALONE_S``."""
        alone_s, stopping = 0.0, False
        while not self._over.wait(LOOK_S):
            if self._run.stopping.is_set() and not stopping:
                stopping = True
                self._heartbeats.poke()
            answered = self._list()
            if answered:
                self._do(self._strand)
            alone_s = 0.0 if answered and self._workers else alone_s + LOOK_S
            what = f"no worker is left at {self._address}" if answered else f"{self._address} does not answer"
            if alone_s == LOOK_S * 5:
                self._do(partial(self._note, f"{what}; waiting for {ALONE_S:.0f} s"))
            elif alone_s >= ALONE_S:
                self._do(partial(self._lose, f"{what} for {ALONE_S:.0f} s"))
                return

    def _list(self) -> bool:
        found = in_time(self._client.nthreads, LOOK_S * 5)
        if found is None:
            return False
        new = [worker for worker in found if worker not in self._known]
        if new:
            self._check(new)
        self._workers = {worker: threads for worker, threads in found.items() if self._known.get(worker) == ""}
        self._heartbeats.know(self._workers)
        return True

    def _check(self, workers: list[str]) -> None:
        demands = self._cluster.demands
        machines, errors = ask_each(self._client, workers, this_machine, demands.artifacts)
        ready, _ = ask_each(self._client, list(machines), sessions.hear, self._brief.session, Heartbeat())
        unfit = misfits(demands, machines, errors)
        for worker in workers:
            if why := unfit.get(worker):
                self._do(partial(self._note, f"the worker {worker} receives no hosts: it {why}"))
            if why or ready.get(worker):
                self._known[worker] = why or ""
