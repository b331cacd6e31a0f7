"""A testinfra backend that runs the commands of checks over Hostwright's SSH connections."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host as TestinfraHost

from hostwright.apply.jobs.scripting import work_script
from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh_file
from hostwright.transport import Output
from hostwright.transport.root.become import PATH
from hostwright.transport.root.keptshell import KeptShell
from hostwright.transport.root.rootshell import RootShell

ANSWER_S = 30  #: time limit in seconds of a check's command that may hang, the same as for probes
_KILL_S = 5  #: seconds between SIGTERM and SIGKILL for a command that reached ``ANSWER_S``
TIMED_OUT = 124  #: exit status of timeout(1) for a command that reached its limit
#: shell code after timeout(1) that replaces status 137 (killed), because 137 looks like a lost connection
KILLED_AS_TIMED_OUT = f"|| {{ status=$?; [ $status -ne 137 ] || status={TIMED_OUT}; exit $status; }}"
#: time limit in seconds for a command of a check; training a small model on a slow CPU takes a minute
CHECK_TIMEOUT_S = 300.0

#: directories to try for the login user's programs, as shell words, because /tmp may be mounted noexec
USER_DIRS = '"/tmp/hostwright-check.$(id -u)" "$HOME/.hostwright-check"'
_NOWHERE = 79  #: exit status (our choice) if the login user cannot execute programs in any of ``USER_DIRS``


#: first line of each command of a check; it keeps the login user's original PATH in ``SESSION_PATH``
_SEARCH = f"SESSION_PATH=${{PATH-}} PATH={PATH}:${{PATH:-/bin}}; export SESSION_PATH PATH\n"

_BYTES = "latin-1"  #: encoding that maps each byte to one character
_LAST_LINES = 3  #: maximum number of output lines in the message of a failed assertion (our choice)
_LAST_CHARACTERS = 300  #: maximum number of characters of output in the message of a failed assertion (our choice)

Heard = Callable[[Output], None]


def _unheard(_: Output) -> None:
    """Do nothing: the default for ``heard``."""


class Completed(CommandResult):  # type: ignore[misc]  # testinfra has no types
    """The result of a command in a check. Assertion messages show the command, its status and its last output."""

    def __repr__(self) -> str:
        command = self.command.decode("utf-8", "replace").splitlines() or [""]
        printed = " / ".join((self.stderr.strip() or self.stdout.strip() or "no output").splitlines()[-_LAST_LINES:])
        return f"`{command[0]}{' …' if command[1:] else ''}` (status {self.rc}): {printed[-_LAST_CHARACTERS:]}"


class SessionBackend(BaseBackend):  # type: ignore[misc]  # testinfra has no types
    """A testinfra backend that runs commands in a shell on a host, as the login user or as root."""

    NAME = "hostwright"

    def __init__(self, shell: RootShell, *, root: bool = False, heard: Heard = _unheard, **kwargs: Any):
        super().__init__(shell.host, **kwargs)
        self._heard = heard
        self._kept = KeptShell(shell, root=root)
        self.root = root

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:  # noqa: ARG002 (testinfra's signature)
        """Return the result of ``command``. Each ``%s`` in ``command`` is replaced by one of ``args``, quoted.

        Raises ``HostError`` if the command cannot be run.
        """
        line = self.get_command(command, *args)
        output = self._kept.run(("" if self.root else _SEARCH) + line + "\n", timeout_s=CHECK_TIMEOUT_S)
        if output.truncated:
            raise ProtocolError(self._kept.host, f"the output of the command is too long: {line}")
        return self.completed(line, output)

    def completed(self, line: str, output: Output) -> CommandResult:
        """Return the result of the command ``line`` from ``output``. The function ``heard`` receives ``output``
        first.
        """
        self._heard(output)
        return Completed(self, output.status, self.encode(line), output.stdout, output.stderr)


def testinfra_host(shell: RootShell, *, root: bool = False, heard: Heard = _unheard) -> TestinfraHost:
    """Return the testinfra object ``host`` for an open shell. ``heard`` receives the output of each command."""
    return TestinfraHost(SessionBackend(shell, root=root, heard=heard))


class OnceRunner:
    """Runs each command once for all processes that use the same folder of results.

    Use it only for commands that change nothing and that always print the same output.
    """

    def __init__(self, host: TestinfraHost, folder: Path):
        self._backend: SessionBackend = host.backend
        self._folder = folder

    def __call__(self, command: str, *arguments: str) -> CommandResult:
        """Return the result of a command, from the folder of results if any process has already run the command.

        Raises ``HostError`` if the command cannot be run.
        """
        line = self._backend.get_command(command, *arguments)
        name = hashlib.sha256(f"{self._backend.root} {line}".encode("utf-8", "surrogateescape")).hexdigest()
        with (self._folder / name).open("a+b") as file:
            flock(file, LOCK_EX)
            file.seek(0)
            if known := file.read():
                status, *texts = json.loads(known)
                stdout, stderr = (text.encode(_BYTES) for text in texts)
                return self._backend.completed(line, Output(status, stdout, stderr, False, 0.0))
            done = self._backend.run(line)
            texts = [data.decode(_BYTES) for data in (done.stdout_bytes, done.stderr_bytes)]
            file.write(json.dumps([done.rc, *texts]).encode())
            return done


class BoundedRunner:
    """Runs commands that may hang, each once and with the time limit ``ANSWER_S``.

    After a program has hung, no process that uses the same folder of results runs it again.
    """

    def __init__(self, host: TestinfraHost, folder: Path):
        self._once = OnceRunner(host, folder)
        self._hung = folder / "hung"

    def __call__(self, command: str, *arguments: str) -> CommandResult:
        """Raises ``AssertionError`` if the command's program hangs."""
        program = command.split(maxsplit=1)[0]
        with self._hung.open("a+") as file:
            flock(file, LOCK_EX)
            file.seek(0)
            if program not in file.read().splitlines():
                done = self._once(f"timeout -k {_KILL_S} {ANSWER_S} {command} {KILLED_AS_TIMED_OUT}", *arguments)
                if done.rc != TIMED_OUT:
                    return done
                file.write(f"{program}\n")
        raise AssertionError(f"{program} does not answer within {ANSWER_S} s: it hangs")


def program_runner(host: TestinfraHost, root_run: Callable[..., CommandResult]) -> Callable[..., CommandResult]:
    """Return the function ``run(script, *arguments)``, for scripts that create programs and execute them.

    ``$TMPDIR`` is a directory in which programs may be executed. ``host`` runs the script as the login user or, if that
    user cannot execute programs, ``root_run`` runs it.
    """

    def run(script: str, *arguments: str) -> CommandResult:
        program = sh_file(__file__, "program.sh", program=script, arguments=arguments, nowhere=_NOWHERE)
        done = host.run(work_script(USER_DIRS) + program)
        return done if done.rc != _NOWHERE else root_run(work_script() + program)

    return run
