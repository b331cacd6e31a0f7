"""The session of a run on one worker, a Dask plugin: runs tasks, receives heartbeats, and releases hosts.

Without a ``Heartbeat`` for ``LEASE_S``, a worker releases its hosts: their jobs continue, their locks end, and other
workers may receive them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker

from hostwright.apply.delivery.sources.handout import Handout
from hostwright.apply.events import Event, Note
from hostwright.apply.executors.cluster import reporting, sites
from hostwright.apply.executors.cluster.attempt import Attempt, Workplace
from hostwright.apply.executors.cluster.messages import Brief, Heartbeat, Message, Task, session_name
from hostwright.apply.locking.runlock import now_s
from hostwright.inventory import Inventory
from hostwright.plan.desired import forget_questions
from hostwright.plan.roles.role import discover
from hostwright.plan.targets import Roster

#: seconds between two heartbeats to workers (our choice). Each heartbeat adds a line to a worker's log.
HEARTBEAT_S = 15.0
LEASE_S = 45.0  #: seconds without a heartbeat after which a worker releases its hosts, enough for three heartbeats
LEAVE_S = 5.0  #: seconds to wait until running attempts have released their hosts (our choice)


class WorkerSession(WorkerPlugin):
    """The Dask plugin for one run on one worker. Only ``brief`` is sent; ``setup`` creates the other attributes."""

    def __init__(self, brief: Brief):
        self.brief = brief

    def setup(self, worker: Worker) -> None:
        """Unpack the run's site and initialize the plugin. Dask calls this method on each worker."""
        self._site = sites.unpacked(self.brief.site)
        self._place = Workplace(
            self.brief, self._roster, worker.address, str(worker.name), partial(worker.log_event, self.brief.session)
        )
        self._change = threading.Condition()  # This condition guards the fields below.
        self._attempts: dict[str, Attempt] = {}
        #: distributor of files to this worker's hosts; ``None`` while the worker has no hosts
        self._handout: Handout | None = None
        self._reading = threading.Lock()  # This lock guards ``_known``.
        self._known: Roster | None = None
        self._stopping = False
        self._heard_s = now_s()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask's signature
        """Release every host of this worker, because the worker shuts down or the run is over."""
        self.leave()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """Release the host of the running task ``key`` if the cluster has released this task.

        Dask calls this for each state change of a task.
        """
        if start == "executing" and finish == "released":
            for attempt in self._now():
                if attempt.key == str(key):
                    attempt.leave()

    def run(self, task: Task, key: str) -> None:
        """Run ``task`` from the claim to the end, in a thread of the worker. ``key`` is the name of the task in the
        cluster.
        """
        attempt = Attempt(self._place, task, key)
        handout = self._enter(attempt)
        try:
            attempt.run(handout)
        finally:
            self._part(attempt)

    def _enter(self, attempt: Attempt) -> Handout:
        with self._change:
            if not self._attempts:
                self._heard_s = now_s()
                threading.Thread(target=self._watch, name="lease", daemon=True).start()
            if self._handout is None:
                self._handout = Handout(self.brief.stamp.id, self.brief.files, self._tell)
            self._attempts[attempt.id] = attempt
            if self._stopping:
                attempt.stop()
                self._handout.stop()
            return self._handout

    def _part(self, attempt: Attempt) -> None:
        over: Handout | None = None
        with self._change:
            del self._attempts[attempt.id]
            if not self._attempts:
                over, self._handout = self._handout, None
            self._change.notify_all()
        if over is not None:
            over.close()
            forget_questions()

    def hear(self, heartbeat: Heartbeat) -> None:
        """Process a heartbeat from the operator's machine. Returns without waiting."""
        with self._change:
            self._heard_s = now_s()
            handout = self._handout if heartbeat.stopping and not self._stopping else None
            self._stopping = heartbeat.stopping
        if handout is not None:
            threading.Thread(target=handout.stop, name="stop-files", daemon=True).start()
        for attempt in self._now():
            if attempt.id in heartbeat.leave:
                attempt.leave()
                continue
            if heartbeat.stopping:
                attempt.stop()
            if attempt.id in heartbeat.going:
                attempt.go(heartbeat.going[attempt.id])

    def leave(self) -> None:
        """Release every host of this worker. Returns without waiting."""
        for attempt in self._now():
            attempt.leave()

    def empty(self, timeout_s: float) -> bool:
        """Wait until no attempt runs on this worker. Return ``False`` if that took longer than ``timeout_s``."""
        with self._change:
            return self._change.wait_for(lambda: not self._attempts, timeout_s)

    def _tell(self, event: Event) -> None:
        if isinstance(event, Note):
            event = replace(event, text=f"on the worker {self._place.name}: {event.text}")
        for attempt in self._now()[:1]:
            attempt.tell(event)

    def _now(self) -> tuple[Attempt, ...]:
        with self._change:
            return tuple(self._attempts.values())

    def _watch(self) -> None:
        """Release all hosts when no heartbeat has arrived for ``LEASE_S``."""
        while True:
            with self._change:
                left_s = self._heard_s + LEASE_S - now_s()
                if self._change.wait_for(lambda: not self._attempts, max(0.0, left_s)):
                    return
                silent = now_s() - self._heard_s >= LEASE_S
            if silent:
                self.leave()
                self.empty(LEASE_S)

    def _roster(self) -> Roster:
        with self._reading:
            if self._known is None:
                site, sources = sites.sources(self.brief.site, self._site)
                self._known = self.brief.roster(
                    sources, Inventory({}, {}), discover(*site.role_packages), self.brief.request, site=site
                )
            return self._known


def run_task(task: Task) -> None:
    """Run ``task``, the work on one host, on this worker. The worker's messages report the outcome."""
    worker = get_worker()
    session = worker.plugins.get(task.session)
    if isinstance(session, WorkerSession):
        session.run(task, str(worker.get_current_task()))


def hear(session: str, heartbeat: Heartbeat, dask_worker: Worker) -> bool:
    """Deliver ``heartbeat`` to the run's session on this worker. Return whether ``session`` exists."""
    found = dask_worker.plugins.get(session)
    if not isinstance(found, WorkerSession):
        return False
    found.hear(heartbeat)
    return True


def kept(run: str, known: Mapping[str, int]) -> list[Message]:
    """Return this worker's stored messages of ``run`` with higher numbers than in ``known``."""
    return reporting.kept(run, known)


async def leave(run: str, known: Mapping[str, int], dask_worker: Worker) -> list[Message]:
    """Release the hosts of ``run`` after the run's own machine died. Return this worker's stored messages as ``kept``
    does.
    """
    session = dask_worker.plugins.get(session_name(run))
    if isinstance(session, WorkerSession):
        session.leave()
        await asyncio.to_thread(session.empty, LEAVE_S)
    return reporting.kept(run, known)


def forget(run: str) -> None:
    """Delete this worker's stored messages of ``run``. Call this once the run's journal is complete."""
    reporting.forget(run)
