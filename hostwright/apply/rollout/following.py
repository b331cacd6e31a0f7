"""Follows runs that another process or machine started. This module changes nothing on the hosts and takes no lock.

A host reports the run that holds its lock and its running jobs; the logs of the jobs show the progress.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from hostwright.apply import events
from hostwright.apply.host.connection import HostConnection
from hostwright.apply.host.jobrunner import JobRunner
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.apply.run import Run
from hostwright.common.errors import HostError
from hostwright.common.untrusted import guarded
from hostwright.plan.host import jobs, locks
from hostwright.plan.host.jobs import RunningJob
from hostwright.plan.observing import ask

LOOK_S = 2.0  #: seconds between two polls of a host's jobs (our choice). Most steps take longer.
TIMEOUT_S = 60.0  #: time limit in seconds of one poll of a host's jobs


@dataclass(frozen=True, slots=True)
class Followed:
    """The observations on one host while a run worked on it. ``run`` is empty if no run worked on the host.

    ``failed`` are the roles whose jobs failed or were lost; ``done`` are the roles whose jobs succeeded.
    """

    host: str
    run: str = ""
    operator: str = ""
    done: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def follow_each(run: Run) -> Results[Followed]:
    """Follow the run that works on each host until that run has ended there. Errors of hosts are in the results."""
    by_name, connections = run.targets.by_name, run.connections

    def of_host(name: str) -> Followed:
        connection = HostConnection(name, lambda: connections.connect(by_name[name]), emit=run.emit)
        try:
            return _Following(run, connection).to_the_end()
        finally:
            connection.close()

    with run.shown():
        return on_each(tuple(by_name), of_host, stop=connections.close)


class _Following:
    def __init__(self, run: Run, connection: HostConnection):
        self._connection, self._emit = connection, run.emit
        self._runner = JobRunner(connection, run)
        self._jobs: dict[str, threading.Thread] = {}
        self._status: dict[str, int | None] = {}  #: role → exit status of the role's latest job
        self._run = self._operator = ""

    def to_the_end(self) -> Followed:
        pause = threading.Event()
        while self._look():
            pause.wait(LOOK_S)
        for thread in self._jobs.values():
            thread.join()
        return self._ended()

    def _look(self) -> bool:
        probes = (locks.RUN_LOCK, jobs.RUNNING)
        facts = self._connection.use(lambda shell: ask(shell, probes, timeout_s=TIMEOUT_S))
        holder, running = locks.run_lock(facts), jobs.running(facts)
        if not self._run and (holder or running):
            self._run, self._operator = (holder.run, holder.owner) if holder else (running[0].run, running[0].operator)
            self._emit(
                events.Note(
                    self._connection.host,
                    str(holder or f"the run {self._run} has ended, but its job continues on the host"),
                )
            )
        ours = [job for job in running if job.run == self._run and job.nonce]
        for job in ours[: jobs.MOST_RUNNING]:
            if job.id not in self._jobs:
                self._jobs[job.id] = threading.Thread(target=self._follow, args=(job,), daemon=True)
                self._jobs[job.id].start()
        return bool(ours) or (holder is not None and holder.run == self._run)

    def _follow(self, job: RunningJob) -> None:
        host = self._connection.host
        self._emit(events.RoleStarted(host, job.role, len(job.steps), job.id))
        try:
            with guarded(host):
                self._status[job.role] = self._runner.follow(job.id, job.role, job.steps, job.nonce).status
        except HostError as error:
            self._status[job.role] = None
            self._emit(events.Note(host, error.sentence))

    def _ended(self) -> Followed:
        done = tuple(role for role, status in self._status.items() if status == 0)
        failed = tuple(role for role, status in self._status.items() if status != 0)
        if failed:
            self._emit(events.HostEnded(self._connection.host, "failed", ", ".join(failed)))
        elif self._run:
            self._emit(events.Note(self._connection.host, f"the run {self._run} has ended on this host"))
        return Followed(self._connection.host, self._run, self._operator, done, failed)
