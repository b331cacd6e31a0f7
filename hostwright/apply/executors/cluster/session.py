"""A run's session on one worker: it works on hosts, receives how the run stands, and lets go of hosts nobody waits for.

A worker gets a ``Heartbeat`` every few seconds. One that gets none for ``LEASE_S`` (its network was cut, the operator's
machine is gone) lets go of its hosts: their jobs go on, their locks end, and another may be given them. Where the
cluster knows earlier that nobody waits for a task any more, the worker itself reports it to the session.
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

HEARTBEAT_S = 15.0  #: our choice: between two heartbeats to a worker, each of which is a line in its log
LEASE_S = 45.0  #: three heartbeats that did not come
LEAVE_S = 5.0  #: our choice: how long attempts that must leave are waited for, before their records are read


class WorkerSession(WorkerPlugin):
    """The session of one run on one worker. It is sent as its ``brief`` alone; the rest is made in ``setup``."""

    def __init__(self, brief: Brief):
        self.brief = brief

    def setup(self, worker: Worker) -> None:
        """Take up work on this worker: its site is unpacked. Called by the cluster, also on workers that join later."""
        self._site = sites.unpacked(self.brief.site)
        self._place = Workplace(
            self.brief, self._roster, worker.address, str(worker.name), partial(worker.log_event, self.brief.session)
        )
        self._change = threading.Condition()  # guards the fields below
        self._attempts: dict[str, Attempt] = {}
        self._handout: Handout | None = None  #: of files to the hosts of this worker, as long as it has some
        self._reading = threading.Lock()  # guards the next one
        self._known: Roster | None = None
        self._stopping = False
        self._heard_s = now_s()

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - the cluster's own signature
        """The worker closes, or the run is over: let go of every host."""
        self.leave()

    def transition(self, key: Any, start: str, finish: str, **_: Any) -> None:
        """A task of the worker changes its state: one that runs and is released is wanted by nobody any more."""
        if start == "executing" and finish == "released":
            for attempt in self._now():
                if attempt.key == str(key):
                    attempt.leave()

    def run(self, task: Task, key: str) -> None:
        """Work on one host, from the claim to the end. Called in a thread of the worker's."""
        attempt = Attempt(self._place, task, key)
        handout = self._enter(attempt)
        try:
            attempt.run(handout)
        finally:
            self._part(attempt)

    def _enter(self, attempt: Attempt) -> Handout:
        """An attempt begins. With the first one, this worker begins to hand out files."""
        with self._change:
            if not self._attempts:
                self._heard_s = now_s()
                threading.Thread(target=self._watch, name="lease", daemon=True).start()
            if self._handout is None:
                self._handout = Handout(self.brief.run.id, self.brief.files, self._tell)
            self._attempts[attempt.id] = attempt
            if self._stopping:
                attempt.stop()
                self._handout.stop()
            return self._handout

    def _part(self, attempt: Attempt) -> None:
        """An attempt has ended. After the last one, nothing is handed out or remembered."""
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
        """How the run stands. Called by the operator's machine; does not wait for anything."""
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
        """Let go of every host. Returns without waiting."""
        for attempt in self._now():
            attempt.leave()

    def empty(self, timeout_s: float) -> bool:
        """Wait until no attempt is left here; whether that came true in time."""
        with self._change:
            return self._change.wait_for(lambda: not self._attempts, timeout_s)

    def _tell(self, event: Event) -> None:
        """Why this worker cannot serve files, in the name of whichever attempt is there."""
        if isinstance(event, Note):
            event = replace(event, text=f"on the worker {self._place.name}: {event.text}")
        for attempt in self._now()[:1]:
            attempt.tell(event)

    def _now(self) -> tuple[Attempt, ...]:
        with self._change:
            return tuple(self._attempts.values())

    def _watch(self) -> None:
        """Leave when nothing was heard for too long, for as long as there are attempts."""
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
        """What is known of the run's site: read once, by the first task."""
        with self._reading:
            if self._known is None:
                site, sources = sites.sources(self.brief.site, self._site)
                self._known = self.brief.roster(
                    sources,
                    Inventory({}, {}),
                    discover(*site.role_packages),
                    self.brief.request,
                    site=site,
                )
            return self._known


def run_task(task: Task) -> None:
    """The task of one host, on a worker. All that comes of it is told; it returns nothing."""
    worker = get_worker()
    session = worker.plugins.get(task.session)
    if isinstance(session, WorkerSession):
        session.run(task, str(worker.get_current_task()))


def hear(session: str, heartbeat: Heartbeat, dask_worker: Worker) -> bool:
    """Pass a heartbeat to the session of a run on this worker; whether it is there."""
    found = dask_worker.plugins.get(session)
    if not isinstance(found, WorkerSession):
        return False
    found.hear(heartbeat)
    return True


def kept(run: str, known: Mapping[str, int]) -> list[Message]:
    """What is kept here of a run beyond what is known of its attempts."""
    return reporting.kept(run, known)


async def leave(run: str, known: Mapping[str, int], dask_worker: Worker) -> list[Message]:
    """Let go of the hosts of a run whose operator's machine is gone; what is kept of it beyond what is known."""
    session = dask_worker.plugins.get(session_name(run))
    if isinstance(session, WorkerSession):
        session.leave()
        await asyncio.to_thread(session.empty, LEAVE_S)
    return reporting.kept(run, known)


def forget(run: str) -> None:
    """Remove what is kept here of a run that came to its end, since its journal has all of it."""
    reporting.forget(run)
