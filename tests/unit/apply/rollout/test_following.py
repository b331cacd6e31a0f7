"""Somebody else's run, followed on the host: with this machine's own /bin/sh and real jobs in the place of the host."""

from __future__ import annotations

import os
import subprocess
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostwright import inventory
from hostwright.apply import events
from hostwright.apply.host.connection import HostConnection
from hostwright.apply.rollout import following
from hostwright.apply.rollout.following import Followed, _Following
from hostwright.common.operator import process_start
from hostwright.plan.host import jobs as hostjobs
from hostwright.plan.host import locks
from hostwright.plan.host.locks import Holder
from hostwright.plan.model import Probe
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell
from tests.unit.support.hostjobs import lay, make, start, until, waiting
from tests.unit.support.runs import run_of

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


class LocalSession:
    """Runs what a host would run, here."""

    host = inventory.Host("gpu01")
    noise, noise_note = b"", ""

    def run(self, command: str, *, stdin: bytes, timeout_s: float, on_stdout: Any = None, **_: Any) -> Output:
        done = subprocess.run(command.split(), input=stdin, capture_output=True, timeout=timeout_s, check=False)
        if on_stdout:
            on_stdout(done.stdout)
        return Output(done.returncode, done.stdout, done.stderr, False, 0.0)

    def close(self) -> None:
        """Nothing to close."""


class Watched:
    """A host on which somebody works, and what a follower says of it."""

    def __init__(self, folder: Path):
        self.run = folder / "run"
        self.said: list[events.Event] = []
        self.ended: list[Followed] = []
        connection = HostConnection("gpu01", lambda: RootShell(LocalSession()), emit=self.said.append)  # type: ignore[arg-type]
        following_host = _Following(run_of(emit=self.said.append), connection)
        self._thread = threading.Thread(target=lambda: self.ended.append(following_host.to_the_end()), daemon=True)

    def lock(self, run: str) -> None:
        """A run works on the host; its controller's program is this process."""
        pid = os.getpid()
        holder = Holder("jane@laptop", run, "gpu01", "other-machine", pid, process_start(pid), NOW)
        self.run.mkdir(exist_ok=True)
        (self.run / "run.json").write_text(holder.to_json())
        (self.run / "run.pid").write_text(f"{pid} {process_start(pid).partition('@')[0]}\n")

    def unlock(self) -> None:
        (self.run / "run.pid").unlink()

    def begin(self) -> None:
        self._thread.start()

    def result(self) -> Followed:
        self._thread.join(60)
        (followed,) = self.ended
        return followed

    def texts(self) -> list[str]:
        return [event.text for event in self.said if isinstance(event, events.Note)]

    def of(self, kind: type[events.Event]) -> list[Any]:
        return [event for event in self.said if isinstance(event, kind)]


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    jobs = lay(tmp_path, monkeypatch)
    script = hostjobs.RUNNING.script.replace("/var/lib/hostwright/jobs", str(jobs))
    monkeypatch.setattr(hostjobs, "RUNNING", Probe(script.replace("/run/systemd/system", str(tmp_path / "none"))))
    monkeypatch.setattr(locks, "RUN_LOCK", Probe(locks.RUN_LOCK.script.replace(locks.RUN_DIR, str(tmp_path / "run"))))
    plainly = lambda user, root, password, **_: f"{user}\n{root}".encode()  # noqa: E731
    monkeypatch.setattr("hostwright.transport.root.rootshell.wrap", plainly)
    monkeypatch.setattr(following, "LOOK_S", 0.05)
    return Watched(tmp_path)


def test_a_host_on_which_nobody_works(watched: Watched) -> None:
    watched.begin()
    assert watched.result() == Followed("gpu01")
    assert watched.texts() == []


def test_a_run_of_another_machine_is_followed_until_its_lock_is_gone(watched: Watched, tmp_path: Path) -> None:
    watched.lock("run1")
    watched.begin()
    until(watched.texts, "the run is named")
    assert watched.texts() == ["in use by jane@laptop since 2026-11-24 12:00 UTC (run run1)"]
    start(make(waiting(tmp_path / "go"), "echo done"))
    until(lambda: watched.of(events.RoleStarted), "its job is seen")
    assert watched.ended == []
    (tmp_path / "go").touch()
    until(lambda: watched.of(events.RoleFinished), "the end of its job is seen")
    assert watched.ended == [], "between two jobs the run goes on"
    watched.unlock()
    assert watched.result() == Followed("gpu01", "run1", "jane@laptop", ("cuda",), ())
    assert watched.texts()[-1] == "the run run1 has ended on this host"


def test_a_job_whose_controller_is_gone_is_followed_to_its_end(watched: Watched, tmp_path: Path) -> None:
    job = make(waiting(tmp_path / "go"), "echo no space left >&2; exit 3")
    start(job)
    until((tmp_path / "jobs" / job.id / "pid").exists, "it runs")
    watched.begin()
    until(lambda: watched.of(events.RoleStarted), "its job is seen")
    (tmp_path / "go").touch()
    assert watched.result() == Followed("gpu01", "run1", "jane@laptop", (), ("cuda",))
    assert watched.texts() == ["the run run1 has ended, but its job continues on the host"]
    assert watched.of(events.HostEnded) == [events.HostEnded("gpu01", "failed", "cuda")]


def test_the_next_run_on_the_host_is_not_followed(watched: Watched) -> None:
    watched.lock("run1")
    watched.begin()
    until(watched.texts, "the run is named")
    watched.lock("run2")
    assert watched.result() == Followed("gpu01", "run1", "jane@laptop")
