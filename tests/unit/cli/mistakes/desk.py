"""A user at a desk: a site with two hosts, and the real command in its own process."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request
from tests.places import PROJECT
from tests.unit.support import forked

HOSTS = """\
all:
  children:
    rack3:
      hosts:
        gpu01: {ansible_host: 127.0.0.1, ansible_port: 9}
        gpu02: {ansible_host: 127.0.0.1, ansible_port: 9}
"""
BOUND = ("setpriv", "--bounding-set=-all")  #: drops the capabilities by which root ignores the modes of files
#: end of a sentence: the end of its line, or a space and a capital letter, unlike in paths and abbreviations
_END = re.compile(r"[.!?](?= +[A-Z`])")


@dataclass(frozen=True)
class Said:
    """The exit status and the output of a call."""

    status: int
    out: str
    err: str

    @property
    def sentences(self) -> int:
        """Return the number of sentences on standard error."""
        return sum(1 + len(_END.findall(line)) for line in self.err.splitlines() if line.strip())


class Desk:
    """A site in a folder, which is the working directory of all calls."""

    def __init__(self, folder: Path):
        self.folder, self.site = folder, folder / "fleet"
        self.state = folder / "state"
        assert init(Request(), str(self.site)) == 0
        self.write("inventory/hosts.yml", HOSTS)

    def write(self, name: str, text: str, *, executable: bool = False) -> Path:
        """Write a file of the site."""
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())  # keep line endings
        path.chmod(0o755 if executable else 0o644)
        return path

    def types(
        self,
        line: str,
        *,
        program: str = "hostwright",
        where: Path | None = None,
        env: Mapping[str, str] | None = None,
        bound: bool = False,
        within: Sequence[str] = (),
        text: str = "",
    ) -> Said:
        """Type a line after ``hostwright``. ``bound``: file modes apply, as for users other than root. ``within``:
        prefix of the call (``mounts``)."""
        there = ("env", "-C", str(where or self.site)) if within else ()
        before = (*within, *there, *(BOUND if bound and os.getuid() == 0 else ()))
        return self.typed(program, *shlex.split(line), where=where, env=env, before=before, text=text)

    def types_into(self, output: IO[str] | int, line: str) -> Said:
        """Type a line whose standard output goes to another file, and is not returned."""
        command = [sys.executable, "-m", "hostwright", *shlex.split(line)]
        done = subprocess.run(
            command,
            cwd=self.site,
            env=self.environment({}),
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        return Said(done.returncode, "", done.stderr)

    def typed(
        self,
        program: str,
        *words: str,
        where: Path | None = None,
        env: Mapping[str, str] | None = None,
        before: Sequence[str] = (),
        text: str = "",
    ) -> Said:
        """Run the same call as words. ``before`` is a program that starts it."""
        command, place, env = [*before, sys.executable, "-m", program, *words], where or self.site, env or {}
        if before or program != "hostwright" or any(name.startswith(forked.STARTS_PYTHON) for name in env):
            done = subprocess.run(
                command, cwd=place, env=self.environment(env), input=text, capture_output=True, text=True, check=False,
                start_new_session=True,
            )  # fmt: skip
        else:
            done = forked.run(words, cwd=place, env=self.environment(env), text=text)
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        if program == "hostwright":  # recommended commands have the form of this user's calls
            assert "`invoke " not in done.stdout + done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def at_work(self, line: str, *, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
        """Start the same call in another terminal, and continue while it runs; its ``stdout`` has the output."""
        with subprocess.Popen(
            [sys.executable, "-m", "hostwright", *shlex.split(line)],
            cwd=self.site,
            env=self.environment(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of this process without variables about a site."""
        strange = ("HOSTWRIGHT_", "ANSIBLE_", "PYTHONDONTWRITE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        ours = {"PYTHONPATH": str(PROJECT), "HOSTWRIGHT_STATE": str(self.state), "NO_COLOR": "1"}
        ours["PYTHONPYCACHEPREFIX"] = str(
            self.folder.parent / "compiled"
        )  # otherwise each call would compile all modules
        return {**kept, **ours, **more}
