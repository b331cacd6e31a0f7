"""testinfra over our own connection: the same host keys, jump hosts and sudo as everything else."""

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

ANSWER_S = 30  #: one command of a program that may hang; the time that probes give such a program, too
_KILL_S = 5  #: after which it is killed
TIMED_OUT = 124  #: exit status of timeout(1)
#: Shell command after that of timeout(1): 137, a program that had to be killed, would count as a lost host.
KILLED_AS_TIMED_OUT = f"|| {{ status=$?; [ $status -ne 137 ] || status={TIMED_OUT}; exit $status; }}"
CHECK_TIMEOUT_S = 300.0  #: one command of a check; training a small model on the CPU of a slow host takes a minute

#: Shell words: where the login user's programs of a check may lie. A hardened host's /tmp may not execute.
USER_DIRS = '"/tmp/hostwright-check.$(id -u)" "$HOME/.hostwright-check"'
_NOWHERE = 79  #: our choice of an exit status: the user has no directory in which programs may be run


#: The first line of a check's commands: they are found whatever PATH the host gives to sessions, which is kept for the
#: check of that.
_SEARCH = f"SESSION_PATH=${{PATH-}} PATH={PATH}:${{PATH:-/bin}}; export SESSION_PATH PATH\n"

_BYTES = "latin-1"  #: a character for each byte
_LAST_LINES = 3  #: our choice, of what a command printed, in the message of an assertion
_LAST_CHARACTERS = 300  #: our choice, of these

Heard = Callable[[Output], None]


def _unheard(_: Output) -> None:
    """Nobody wants to know what commands print."""


class Completed(CommandResult):  # type: ignore[misc]  # testinfra has no types
    """A command's result. An assertion's message names it by its command, its status and its last lines."""

    def __repr__(self) -> str:
        command = self.command.decode("utf-8", "replace").splitlines() or [""]
        printed = " / ".join((self.stderr.strip() or self.stdout.strip() or "no output").splitlines()[-_LAST_LINES:])
        return f"`{command[0]}{' …' if command[1:] else ''}` (status {self.rc}): {printed[-_LAST_CHARACTERS:]}"


class SessionBackend(BaseBackend):  # type: ignore[misc]  # testinfra has no types
    """A testinfra backend that runs its commands over an open session, as the login user or as root."""

    NAME = "hostwright"

    def __init__(self, shell: RootShell, *, root: bool = False, heard: Heard = _unheard, **kwargs: Any):
        super().__init__(shell.host, **kwargs)
        self._heard = heard
        self._kept = KeptShell(shell, root=root)
        self.root = root  #: whether its commands run as root

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:  # noqa: ARG002 (testinfra's signature)
        """Run a command; ``%s`` in it take the arguments, quoted. Raises ``HostError`` where it could not be asked."""
        line = self.get_command(command, *args)
        output = self._kept.run(("" if self.root else _SEARCH) + line + "\n", timeout_s=CHECK_TIMEOUT_S)
        if output.truncated:
            raise ProtocolError(self._kept.host, f"it printed more than can be read: {line}")
        return self.completed(line, output)

    def completed(self, line: str, output: Output) -> CommandResult:
        """Return the result of a command that printed this output to the check that runs now."""
        self._heard(output)
        return Completed(self, output.status, self.encode(line), output.stdout, output.stderr)


def testinfra_host(shell: RootShell, *, root: bool = False, heard: Heard = _unheard) -> TestinfraHost:
    """The testinfra ``host`` object for an open session; ``heard`` is given the output of each command."""
    return TestinfraHost(SessionBackend(shell, root=root, heard=heard))


class OnceRunner:
    """Runs each command once, for all processes that have the same folder of answers; meanwhile the others wait.

    Its commands only read, and their answers do not change while a host is verified.
    """

    def __init__(self, host: TestinfraHost, folder: Path):
        self._backend: SessionBackend = host.backend
        self._folder = folder

    def __call__(self, command: str, *arguments: str) -> CommandResult:
        """Return the command's result. Raises ``HostError`` if it could not be asked; the next process then asks."""
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
    """Runs commands of programs that may hang, each once and within ``ANSWER_S``. A program that hung is not run again,
    by any process that has the same folder of answers; meanwhile the others wait for its answer.
    """

    def __init__(self, host: TestinfraHost, folder: Path):
        self._once = OnceRunner(host, folder)
        self._hung = folder / "hung"

    def __call__(self, command: str, *arguments: str) -> CommandResult:
        """Run a command as the host's user. Raises ``AssertionError`` if its program, the first word, hangs."""
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
    """``run(script, *arguments)`` runs a script that makes programs and runs them, in a ``$TMPDIR`` where it may.

    It is run by ``host``, as the login user, and by ``root_run`` on a host where that user may run nothing of his own.
    """

    def run(script: str, *arguments: str) -> CommandResult:
        program = sh_file(__file__, "program.sh", program=script, arguments=arguments, nowhere=_NOWHERE)
        done = host.run(work_script(USER_DIRS) + program)
        return done if done.rc != _NOWHERE else root_run(work_script() + program)

    return run
