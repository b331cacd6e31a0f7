"""The jobs of a host, read from its disk: steps that began, steps that ended, and their status.

The files are read from the host's mounted root, so the host may be off.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hostwright.plan.host.jobs import JOBS_DIR


def named(role: str, number: int, what: str) -> str:
    """Return the name of a step in this suite: ``cuda[4] packages …``."""
    return f"{role}[{number}] {what}"


@dataclass(frozen=True, slots=True)
class JobStep:
    """One step of a job that began; ``status`` is ``None`` without a record of its end."""

    role: str
    number: int
    what: str
    sha256: str  #: of the step's script
    status: int | None
    seconds: float

    @property
    def name(self) -> str:
        """Description of the step with its number in the job, because descriptions may repeat."""
        return named(self.role, self.number, self.what)


@dataclass(frozen=True, slots=True)
class HostJob:
    """One job of a host. ``status`` is ``None`` while it runs, or if the host went down during the job."""

    id: str
    role: str
    status: int | None
    steps: tuple[JobStep, ...]
    ended_s: float | None  #: Unix time at which the status was written

    @property
    def running_step(self) -> JobStep | None:
        """The step that began and did not end, if there is one."""
        return self.steps[-1] if self.steps and self.steps[-1].status is None else None


def folder(root: Path) -> Path:
    """Return the directory of the jobs in a host's root."""
    return root / JOBS_DIR.lstrip("/")


def read_jobs(root: Path) -> list[HostJob]:
    """Return all jobs of a host, oldest first. ``root`` is the mount point of its filesystem."""
    found = []
    with suppress(FileNotFoundError):
        for directory in folder(root).iterdir():
            if not directory.name.endswith(".new"):
                with suppress(FileNotFoundError):  # removed during the walk
                    found.append((directory.stat().st_mtime, _read(directory)))
    return [job for _, job in sorted(found, key=lambda one: (one[0], one[1].id))]


def _read(directory: Path) -> HostJob:
    record = json.loads(_text(directory / "job.json") or "{}")
    role, nonce = str(record.get("role", "")), str(record.get("nonce", ""))
    whats = [str(what) for what in record.get("steps", [])]
    status = _text(directory / "status").strip()
    ended_s = (directory / "status").stat().st_mtime if status else None
    steps = tuple(_steps(directory, role, whats, nonce)) if nonce else ()
    return HostJob(directory.name, role, int(status) if status else None, steps, ended_s)


def _steps(directory: Path, role: str, whats: list[str], nonce: str) -> Iterator[JobStep]:
    marker = re.compile(rf"^{re.escape(nonce)} (begin|end) (\d+)(?: (\d+) (-?\d+))?$", re.MULTILINE)
    begun: list[int] = []
    ended: dict[int, tuple[int, float]] = {}
    for match in marker.finditer(_text(directory / "log")):
        if match[1] == "begin":
            begun.append(int(match[2]))
        elif match[3] is not None:
            ended[int(match[2])] = (int(match[3]), int(match[4]) / 1000)
    for number in begun:
        script = _text(directory / f"step-{number}")
        what = whats[number] if number < len(whats) else script.partition("\n")[0]
        status, seconds = ended.get(number, (None, 0.0))
        yield JobStep(role, number, what, hashlib.sha256(script.encode()).hexdigest(), status, seconds)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return ""


class Follower:
    """The current step on a host, for frequent polling: only new parts of the logs are read."""

    def __init__(self, root: Path):
        self._root = root
        self._records: dict[str, tuple[str, str, list[str]]] = {}
        self._read: dict[str, int] = {}
        self._number: dict[str, int | None] = {}

    def now(self) -> str:
        """Return the running step of the newest job; empty between steps and without a job."""
        found = []
        with suppress(FileNotFoundError):
            for directory in folder(self._root).iterdir():
                with suppress(OSError, ValueError):
                    if not directory.name.endswith(".new") and not (directory / "status").exists():
                        found.append((directory.stat().st_mtime, directory.name, self._step(directory)))
        return next((step for _, _, step in sorted(found, reverse=True) if step), "")

    def _step(self, directory: Path) -> str:
        name = directory.name
        if name not in self._records:
            record = json.loads((directory / "job.json").read_text())
            self._records[name] = (str(record["role"]), str(record["nonce"]), [str(one) for one in record["steps"]])
        role, nonce, whats = self._records[name]
        with (directory / "log").open("rb") as file:
            file.seek(self._read.get(name, 0))
            data = file.read()
        whole = data.rfind(b"\n") + 1
        self._read[name] = self._read.get(name, 0) + whole
        for match in re.finditer(rf"^{re.escape(nonce)} (begin|end) (\d+)".encode(), data[:whole], re.MULTILINE):
            self._number[name] = int(match[2]) if match[1] == b"begin" else None
        number = self._number.get(name)
        return "" if number is None else named(role, number, whats[number] if number < len(whats) else "")
