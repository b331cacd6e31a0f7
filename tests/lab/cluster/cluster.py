"""A real Dask cluster on this machine: a scheduler and workers, each in a separate process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.cluster.hosts import until
from tests.lab.sshd import free_port
from tests.places import PROJECT

DASK = Path(sys.executable).with_name("dask")
QUIET = ("--no-dashboard",)
#: options of Dask's programs: no files besides those that a test reads
SETTINGS = {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "1000", "PYTHONUNBUFFERED": "1"}


@dataclass
class Cluster:
    """The processes of a cluster; ``environment`` is common to all, ``folder`` has their logs and state."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    protocol: str = "tcp"
    port: int = field(default_factory=free_port)
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{self.protocol}://127.0.0.1:{self.port}"

    @property
    def options(self) -> tuple[str, ...]:
        """Command-line options that distribute a verb's work over this cluster."""
        return ("--executor", "dask", "--scheduler", self.address)

    def start_scheduler(self) -> None:
        """Start the scheduler, and wait until it listens."""
        words = ("scheduler", "--protocol", self.protocol, "--host", "127.0.0.1", "--port", str(self.port), *QUIET)
        before = self.log("scheduler")  # log of an earlier scheduler
        self.scheduler = self._start("scheduler", words)
        assert until(lambda: "Scheduler at" in self.log("scheduler")[len(before) :]), self.log("scheduler")

    def start_worker(
        self, name: str, *, threads: int = 4, words: tuple[str, ...] = ("--no-nanny",), **env: str
    ) -> None:
        """Start a worker of this name, and wait until the scheduler has registered it."""
        options = ("--name", name, "--nthreads", str(threads), "--local-directory", str(self.folder / "scratch"))
        before = self.log(name)  # log of an earlier worker of this name
        self.workers[name] = self._start(name, ("worker", self.address, *QUIET, *options, *words), env)
        assert until(lambda: "Registered to" in self.log(name)[len(before) :]), self.log(name)

    def _start(
        self, name: str, words: tuple[str, ...], env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(DASK), *words],
                cwd=self.folder,
                env={**self.environ(), "HOSTWRIGHT_STATE": str(self.folder / "state"), **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def environ(self) -> dict[str, str]:
        """Environment of all processes of the cluster."""
        path = str(PROJECT)  # for test functions that run on workers
        return {**os.environ, **SETTINGS, "PYTHONPATH": path, **self.environment}

    def log(self, name: str) -> str:
        """Return all output of a process."""
        with suppress(FileNotFoundError):
            return (self.folder / f"{name}.log").read_text(errors="replace")
        return ""

    def logs(self) -> str:
        """Return all output of all processes."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def address_of(self, name: str) -> str:
        """Return the current address of a worker."""
        found: list[str] = re.findall(r"Start worker at:\s+(\S+)", self.log(name))
        return found[-1]

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Kill a worker and its children."""
        process = self.workers.pop(name)
        os.killpg(process.pid, number)
        process.wait()

    def stop(self) -> None:
        """End all processes, in any state."""
        for process in (*self.workers.values(), *([self.scheduler] if self.scheduler else [])):
            for number in (signal.SIGCONT, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            process.wait()
        self.workers.clear()
        self.scheduler = None


@contextmanager
def cluster_of(folder: Path, *workers: str, protocol: str = "tcp", **environment: str) -> Iterator[Cluster]:
    """A cluster with these workers during the body."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder, environment, protocol)
    try:
        cluster.start_scheduler()
        for name in workers:
            cluster.start_worker(name)
        yield cluster
    finally:
        cluster.stop()
