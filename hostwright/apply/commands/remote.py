"""Runs one command on one host. A supervisor program on the host kills the command when the connection ends."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Literal

from hostwright.common.errors import Refused, Unreachable
from hostwright.common.quoting import sh, sh_file, words
from hostwright.common.untrusted import whole
from hostwright.plan.probing import new_nonce
from hostwright.transport.root.rootshell import RootShell

#: reason for the end of a command on a host; Ctrl-C leads to ``stopped``
End = Literal["exited", "time limit", "output limit", "stopped"]

LIMIT_S = 60.0  #: default time limit in seconds of a command on a host
GRACE_S = 2  #: seconds between SIGTERM and SIGKILL for a command that exceeds a limit (our choice)
_SLACK_S = 15.0  #: seconds by which the answer of a busy host may be late (our estimate)

_REFUSALS = {
    "root": "the login user is root, so the command could change anything; pass --root to allow that, or set another "
    "user (ansible_user)",
    "setpriv": "setpriv (util-linux), which denies root to the command, is missing; install util-linux, or pass --root",
}


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """A command to run on a host, limited to ``limit_s`` seconds.

    Several ``words`` are a program with its arguments; a single word is a command line for ``/bin/sh``.

    >>> RemoteCommand(("grep", "-c", "a b", "/etc/fstab")).text
    "grep -c 'a b' /etc/fstab"
    >>> RemoteCommand(("lsmod | wc -l",)).argv
    ('/bin/sh', '-c', 'lsmod | wc -l')
    """

    words: tuple[str, ...]
    root: bool = False
    limit_s: float = LIMIT_S

    @property
    def argv(self) -> tuple[str, ...]:
        """The program that runs the command, followed by the arguments of that program."""
        return self.words if len(self.words) > 1 else ("/bin/sh", "-c", *self.words)

    @property
    def text(self) -> str:
        """The command line as the operator typed it."""
        return words(self.words) if len(self.words) > 1 else self.words[0]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command on one host. ``status`` is the exit status; ``None`` if the command was killed."""

    host: str
    end: End
    status: int | None
    stdout: str
    stderr: str
    duration_s: float

    @property
    def passed(self) -> bool:
        """Whether the command exited with 0."""
        return self.status == 0


class Lifeline:
    """The standard input of a command under a supervisor. It carries no data; closing it kills the command."""

    def __init__(self) -> None:
        self._cut = threading.Event()
        self.stopped = False

    def read(self, size: int, /) -> bytes:  # noqa: ARG002 - nothing is ever read
        """Block until the input is closed, then return no bytes. Implements ``transport.Readable``."""
        self._cut.wait()
        return b""

    def stop(self) -> None:
        """Kill the command because the operator stopped it."""
        self.stopped = True
        self.end()

    def end(self) -> None:
        """Close the input, which kills the command if it still runs."""
        self._cut.set()


def run_command(shell: RootShell, command: RemoteCommand, lifeline: Lifeline, cap_bytes: int) -> CommandResult:
    """Run a command on a host, with at most ``cap_bytes`` of output. A failed command is a result, not an error.

    For a command with ``root``, first call ``shell.run``, which checks that sudo works.

    Raises ``Refused`` if a command without ``root`` could gain root rights. Raises ``Unreachable`` if the host does not
    report the end of the command.
    """
    nonce = new_nonce()
    script = sh_file(
        __file__,
        "supervise.sh",
        nonce=nonce,
        words=command.argv,
        limit_s=f"{command.limit_s:g}",
        grace_s=GRACE_S,
        root="yes" if command.root else "",
    )
    began_s, timeout_s = time.monotonic(), command.limit_s + GRACE_S + _SLACK_S
    try:
        if command.root:
            output = shell.stream(script, stdin=lifeline, timeout_s=timeout_s, cap_bytes=cap_bytes)
        else:
            line = sh("exec /bin/sh -c %s", script)
            output = shell.session.run(line, stdin=lifeline, timeout_s=timeout_s, cap_bytes=cap_bytes)
    except Unreachable as error:
        if time.monotonic() - began_s < timeout_s:
            raise
        sentence = (
            f"the host sent no data for {timeout_s:g} s while the command ran, so the result of the command is "
            "unknown; check the host"
        )
        raise Unreachable(shell.host, sentence) from error
    finally:
        lifeline.end()
    stderr, said = _said(output.stderr, nonce)
    if said in _REFUSALS:
        raise Refused(shell.host, _REFUSALS[said])
    status = whole(said)
    end: End = "exited"
    if lifeline.stopped:
        end = "stopped"
    elif output.truncated:
        end = "output limit"
    elif said == "cut":
        end = "time limit"
    elif status is None:
        raise Unreachable(shell.host, "the supervisor of the command was killed, so the exit status is unknown")
    ended = status if end == "exited" else None
    return CommandResult(shell.host, end, ended, _text(output.stdout), _text(stderr), output.duration_s)


def _said(stderr: bytes, nonce: str) -> tuple[bytes, str]:
    before, mark, after = stderr.rpartition(f"\n{nonce} ".encode())
    if not mark:
        return stderr, ""
    word, _, rest = after.partition(b"\n")
    return before + rest, word.decode("ascii", "replace")


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
