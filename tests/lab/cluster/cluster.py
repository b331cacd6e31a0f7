"""A real cluster of Dask on this machine: a scheduler and workers, each a process of its own."""

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
#: of Dask's own programs: nothing is written beside what a test looks at
SETTINGS = {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "1000", "PYTHONUNBUFFERED": "1"}


@dataclass
class Cluster:
    """The processes of a cluster; ``environment`` is that of each, ``folder`` holds their logs and state."""

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
        """What is typed behind a verb so that its work is spread over this cluster."""
        return ("--executor", "dask", "--scheduler", self.address)

    def start_scheduler(self) -> None:
        """Start it, and wait until it listens."""
        words = ("scheduler", "--protocol", self.protocol, "--host", "127.0.0.1", "--port", str(self.port), *QUIET)
        before = self.log("scheduler")  # of one that was here before
        self.scheduler = self._start("scheduler", words)
        assert until(lambda: "Scheduler at" in self.log("scheduler")[len(before) :]), self.log("scheduler")

    def start_worker(
        self, name: str, *, threads: int = 4, words: tuple[str, ...] = ("--no-nanny",), **env: str
    ) -> None:
        """Start a worker of this name, and wait until the scheduler knows it."""
        options = ("--name", name, "--nthreads", str(threads), "--local-directory", str(self.folder / "scratch"))
        before = self.log(name)  # of one that had this name before
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
        """The environment of everybody who takes part in it."""
        path = str(PROJECT)  # for functions of the tests that are sent there
        return {**os.environ, **SETTINGS, "PYTHONPATH": path, **self.environment}

    def log(self, name: str) -> str:
        """All that a process has printed."""
        with suppress(FileNotFoundError):
            return (self.folder / f"{name}.log").read_text(errors="replace")
        return ""

    def logs(self) -> str:
        """All that all processes have printed."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def address_of(self, name: str) -> str:
        """The address at which a worker listens now."""
        found: list[str] = re.findall(r"Start worker at:\s+(\S+)", self.log(name))
        return found[-1]

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a worker, with all that it started."""
        process = self.workers.pop(name)
        os.killpg(process.pid, number)
        process.wait()

    def stop(self) -> None:
        """End everything, whatever state it is in."""
        for process in (*self.workers.values(), *([self.scheduler] if self.scheduler else [])):
            for number in (signal.SIGCONT, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            process.wait()
        self.workers.clear()
        self.scheduler = None


@contextmanager
def cluster_of(folder: Path, *workers: str, protocol: str = "tcp", **environment: str) -> Iterator[Cluster]:
    """A cluster with these workers, gone at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder, environment, protocol)
    try:
        cluster.start_scheduler()
        for name in workers:
            cluster.start_worker(name)
        yield cluster
    finally:
        cluster.stop()
