"""Runs on a cluster: in a thread beside the test, or in a separate process as operators start them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hostwright.apply.events import Event
from hostwright.apply.host.outcome import Outcome
from hostwright.common.request import Request
from hostwright.fleet import Fleet, Listener, RunResults
from hostwright.plan.roles.site import Site
from tests.lab.cluster.hosts import WAIT_S, until
from tests.places import PROJECT


@dataclass
class Run:
    """A provision run in a thread of this process."""

    root: Path
    scheduler: str
    request: Request = field(default_factory=Request)
    hosts: str = "all"
    seen: list[Event] = field(default_factory=list)
    ended: RunResults[Outcome] | None = None
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            fleet = Fleet.load(site=Site(self.root))
            request = replace(self.request, executor="dask", scheduler=self.scheduler)
            self.ended = fleet.provision(fleet.targets(self.hosts), request, view=Listener(self.seen.append))
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.error = error

    def wait(self) -> RunResults[Outcome]:
        """Wait for the run and return its result."""
        self.thread.join(4 * WAIT_S)
        assert not self.thread.is_alive()
        if self.error is not None:
            raise self.error
        assert self.ended is not None
        return self.ended

    def workers_of(self, host: str) -> list[str]:
        """Return the addresses of the workers that had this host, in order, without repetitions."""
        return list(dict.fromkeys(event.origin.worker for event in [*self.seen] if event.origin and event.host == host))

    def said(self, text: str) -> bool:
        """Return whether a note contains this text."""
        return any(text in str(getattr(event, "text", "")) for event in [*self.seen])


def words(results: RunResults[Outcome]) -> dict[str, str]:
    """Return the result of each host: the word of a success, or the error message."""
    return {
        **{outcome.host: outcome.word for outcome in results.results.values},
        **{error.host: error.sentence for error in results.results.errors},
    }


def records(state: Path, run: str = "") -> list[dict[str, Any]]:
    """Return the journal of a run, by default of the last one."""
    folder = state / "runs" / run if run else max((state / "runs").iterdir())
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]


def of_host(journal: list[dict[str, Any]], host: str) -> list[str]:
    """Return the kinds of a host's records, in order."""
    return [record["kind"] for record in journal if record.get("host") == host]


def typed(root: Path, state: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start ``hostwright`` on a command line in a separate process group."""
    return subprocess.Popen(
        [sys.executable, "-m", "hostwright", "--site", str(root), *words],
        cwd=PROJECT,
        env={**os.environ, "HOSTWRIGHT_STATE": str(state), "PYTHONUNBUFFERED": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


class Typed:
    """A started command whose output is read as it comes."""

    def __init__(self, process: subprocess.Popen[str]):
        self.process = process
        self.out = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.out += line

    def wait_for(self, text: str) -> None:
        """Wait until the command has printed this text."""
        assert until(lambda: text in self.out or self.process.poll() is not None), self.out
        assert until(lambda: text in self.out, 5), self.out

    def end(self, wait_s: float = 4 * WAIT_S) -> int:
        """Read all output and return the exit status."""
        status = self.process.wait(wait_s)
        self._reader.join(WAIT_S)
        return status
