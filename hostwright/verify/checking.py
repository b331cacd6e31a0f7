"""Runs the checks of many hosts in one pytest process. pytest loads inventory and checks once, and forks for each
host.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Self

from hostwright.common.errors import HostError
from hostwright.common.input.ownership import NotTrusted, fault_of
from hostwright.common.secret import Secret
from hostwright.common.text import shown_limit
from hostwright.plan.roles.role import Role
from hostwright.plan.roles.site import STANDARD, Site
from hostwright.plan.targets import Roster, TargetHost
from hostwright.verify.verdict import Check
from hostwright.verify.worker import LATE, UNREADABLE

STANDARD_CHECKS = STANDARD / "checks"
LIMIT_S = 1800.0  #: time limit in seconds for all checks of one host
END_S = 10.0  #: time limit in seconds for pytest to exit after the checks of the last host

_DIED = None  #: exit status of a host's process when pytest itself has ended


def files_of(role: Role, site: Site) -> list[Path]:
    """Return the files with checks of ``role``: those of the standard role that ``role`` is or extends, then the
    site's.
    """
    name = f"test_{role.name}.py"
    places = [*([STANDARD_CHECKS / name] if role.standard else []), site.checks / name]
    return list(dict.fromkeys(path.resolve() for path in places if path.exists()))


class Checks:
    """Runs the checks of roles on hosts, in one pytest process. Thread-safe."""

    def __init__(self, roster: Roster, roles: Iterable[Role], *, hosts: int = 1, limit_s: float = LIMIT_S):
        self._roster, self._hosts, self._limit_s = roster, hosts, limit_s
        names = {role.name: role for role in roles}
        self._files = [path for role in names.values() for path in files_of(role, roster.site)]
        self._numbers = itertools.count()
        self._waiting: dict[int, SimpleQueue[int | None]] = {}
        self._lock = threading.Lock()
        self._ended = False

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="hostwright-verify-")
        self._output = Path(self._folder.name) / "pytest"
        if self._files:
            _refuse_others_conftest()
            self._start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._files:
            self._stop(at_once=kind is not None)
        self._folder.cleanup()

    def of(self, target: TargetHost, password: Secret | None) -> tuple[Check, ...]:
        """Run the checks of the roles in ``target`` on the host, and return the results.

        Raises ``HostError`` if the checks cannot be run, or do not end within the time limit.
        """
        if not any(files_of(role, self._roster.site) for role in target.roles):
            return ()
        number = next(self._numbers)
        results, output = (Path(self._folder.name) / f"{number}.{kind}" for kind in ("jsonl", "output"))
        order = {
            "number": number,
            "host": target.name,
            "roles": [role.name for role in target.roles],
            "password": password.reveal() if password else None,
            "limit_s": self._limit_s,
            "results": str(results),
            "output": str(output),
        }
        status = self._order(number, order)
        rows = _read(results)
        open_ = [f"{row['check']} of {row['role']}" for row in rows if "passed" not in row]
        if status == LATE:
            named = f"; still running: {', '.join(open_)}" if open_ else ""
            raise HostError(target.name, f"the checks did not finish within {shown_limit(self._limit_s)}{named}")
        if status == UNREADABLE:
            sentences = b"; ".join(_lines(output)).decode("utf-8", "replace")
            raise HostError(target.name, f"checks of this host's layers cannot be imported: {sentences}")
        if status != 0 or open_ or not rows:
            last_lines = b"\n".join([*_lines(self._output), *_lines(output)][-15:]).decode("utf-8", "replace")
            raise HostError(target.name, f"the checks of this host's layers could not be run:\n{last_lines}")
        return tuple(map(self._check, rows))

    def _check(self, row: dict[str, Any]) -> Check:
        output = row.pop("output")
        del row["number"]
        return Check(
            **row,
            finding=None if row["passed"] else self._roster.knowledge.explain(self._roster, f"{output}\n{row['why']}"),
        )

    def _order(self, number: int, order: dict[str, Any]) -> int | None:
        """Return the exit status of the checks of one host, or ``None`` if pytest ended first."""
        queue: SimpleQueue[int | None] = SimpleQueue()
        with self._lock:
            if self._ended:
                return _DIED
            self._waiting[number] = queue
            with suppress(OSError):  # If pytest has ended, the thread that reads the pipe puts ``None`` into the queue.
                self._pipe.send(order)
        return queue.get()

    def _start(self) -> None:
        self._pipe, theirs = Pipe()
        with theirs, self._output.open("wb") as output:
            self._process = subprocess.Popen(
                self._command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(),),
                env=_environment(),
                start_new_session=True,  # In a new session, pytest can be killed with all child processes.
            )
        passwords = [password.reveal() for password in self._roster.vault.known]
        with suppress(OSError):
            self._pipe.send({"var": self._roster.request.var, "vault": passwords})
        self._reader = threading.Thread(target=self._read, name="checks", daemon=True)
        self._reader.start()

    def _command(self, pipe: int) -> list[str]:
        """Return the pytest command line. The command line contains no secret: variables and passwords are sent through
        ``pipe``.
        """
        command = [sys.executable, "-P", "-m", "pytest", *map(str, self._files), "-p", "hostwright.verify.layer_checks"]
        command += ["--rootdir", str(STANDARD_CHECKS), "-c", str(STANDARD_CHECKS / "pytest.ini")]
        # Without this option, pytest would run a conftest.py in a directory above the checks.
        command += ["--confcutdir", str(self._roster.site.root)]
        command += ["-q", "-s", "-p", "no:cacheprovider", "--tb=short", "--import-mode=importlib"]
        command += ["--hw-site", str(self._roster.site.root), *_inventory(self._roster)]
        command += ["--hw-hosts", str(self._hosts), "--hw-pipe", str(pipe)]
        return command

    def _read(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                number, status = self._pipe.recv()
                self._waiting[number].put(status)
        with self._lock:
            self._ended = True
            for queue in self._waiting.values():
                queue.put(_DIED)

    def _stop(self, *, at_once: bool) -> None:
        with self._lock, suppress(OSError):
            self._pipe.send(None)
        try:
            self._process.wait(0 if at_once else END_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._reader.join()
        self._pipe.close()


def check_layers(target: TargetHost, roster: Roster, password: Secret | None) -> tuple[Check, ...]:
    """Run the checks of the roles in ``target`` on the host, and return the results.

    Raises ``HostError`` if the checks cannot be run, or do not end in time.
    """
    with Checks(roster, target.roles) as checks:
        return checks.of(target, password)


def _refuse_others_conftest() -> None:
    """Raise ``NotTrusted`` for a ``conftest.py`` that others may have written, because pytest would run it."""
    for folder in STANDARD_CHECKS.parents:
        if (folder / "conftest.py").exists() and (fault := fault_of(folder / "conftest.py")):
            raise NotTrusted(
                f"pytest would run a file that other users may be able to change: {fault}; remove the file, or install "
                "Hostwright elsewhere"
            )


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return {**kept, "PYTHONPATH": str(STANDARD.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}


def _read(results: Path) -> list[dict[str, Any]]:
    rows = map(json.loads, _lines(results))
    return [row for _, row in sorted({row["number"]: row for row in rows}.items())]


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


def _inventory(roster: Roster) -> list[str]:
    if roster.sources == (roster.site.inventory,):
        return []
    return [word for source in roster.sources for word in ("--hw-inventory", str(source))]
