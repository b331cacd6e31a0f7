"""Hosts of one run of the benchmark, created on first use and removed at the end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring.controlgroup import kill_all
from benchmarks.places import hosts
from benchmarks.places.hosts import Hosts
from benchmarks.places.replay import Replaying, replaying
from lab.locking import locked
from lab.mounts import unmount_below

PREFIX = "hwbench-run-"  #: name prefix of the directory of one benchmark run


@dataclass(slots=True)
class Places:
    """Hosts of one run of the benchmark, and directories for files of its cases."""

    work: Path  #: directory for the files of one benchmark run
    stack: ExitStack
    tell: Callable[[str], None]
    _hosts: list[Hosts] = field(default_factory=list)
    _replaying: list[Replaying] = field(default_factory=list)

    def hosts(self) -> Hosts:
        """Return the lab. The first call creates the lab and one provisioned host."""
        if not self._hosts:
            self.tell("making the lab, and provisioning the host of which all others are clones")
            self.stack.callback(hosts.take_down)
            self._hosts.append(hosts.make(self.work))
        return self._hosts[0]

    def replaying(self) -> Replaying:
        """Return the loopback hosts. The first call records a provisioned host and creates the loopback hosts."""
        if not self._replaying:
            lab = self.hosts()
            self.tell("recording what a provisioned host answers")
            self._replaying.append(self.stack.enter_context(replaying(lab)))
        return self._replaying[0]

    def folder(self, name: str) -> Path:
        """Create an empty directory for the case ``name``; return its path."""
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


@contextmanager
def places(tell: Callable[[str], None]) -> Iterator[Places]:
    """Yield ``Places``, and remove hosts and files at the end. Another run of the benchmark waits until then."""
    with locked("benchmarks"), ExitStack() as stack:
        _remove_remains()
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=PREFIX)))
        work.chmod(0o755)
        yield Places(work, stack, tell)


def _remove_remains() -> None:
    """Remove processes, mounts and files of an interrupted run. The next run replaces that run's lab and user."""
    kill_all()
    for work in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        unmount_below(work)
        shutil.rmtree(work, ignore_errors=True)
