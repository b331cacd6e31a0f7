"""One command on one host: supervised there, so that nothing of it is left when nobody waits for it any more."""

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

#: by itself · ended after the time limit · ended after more output than is kept · ended on Ctrl-C
End = Literal["exited", "time limit", "output limit", "stopped"]

LIMIT_S = 60.0  #: of a command, unless the operator says another
GRACE_S = 2  #: our choice: between SIGTERM and SIGKILL
_SLACK_S = 15.0  #: our estimate: what a busy host may take beyond the limit before it counts as hanging

_REFUSALS = {
    "root": "its login user is root, so the command could change anything: use --root if it may, or log in as another "
    "user (ansible_user)",
    "setpriv": "it has no setpriv (of util-linux), which keeps the command from becoming root: install it, or say "
    "--root",
}


@dataclass(frozen=True, slots=True)
class RemoteCommand:
    """What is run: several ``words`` are a program and its arguments, which no shell reads; a single one is a line for
    ``/bin/sh``. ``limit_s`` seconds after its start it is ended.

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
        """The program and its arguments."""
        return self.words if len(self.words) > 1 else ("/bin/sh", "-c", *self.words)

    @property
    def text(self) -> str:
        """The command as one types it."""
        return words(self.words) if len(self.words) > 1 else self.words[0]


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What came of a command on one host. ``status`` is its exit status, ``None`` where it did not end by itself."""

    host: str
    end: End
    status: int | None
    stdout: str
    stderr: str
    duration_s: float

    @property
    def passed(self) -> bool:
        """Whether it ended by itself, with 0."""
        return self.status == 0


class Lifeline:
    """The standard input of a supervised command: nothing comes from it, and its end ends the command."""

    def __init__(self) -> None:
        self._cut = threading.Event()
        self.stopped = False  #: whether the operator has cut it

    def read(self, size: int, /) -> bytes:  # noqa: ARG002 - nothing is ever read
        """See ``transport.Readable``: waits for the end."""
        self._cut.wait()
        return b""

    def stop(self) -> None:
        """End the command for the operator."""
        self.stopped = True
        self.end()

    def end(self) -> None:
        """Nobody waits for the command any more."""
        self._cut.set()


def run_command(shell: RootShell, command: RemoteCommand, lifeline: Lifeline, cap_bytes: int) -> CommandResult:
    """Run a command on a host and return what came of it, whatever its status is; at most ``cap_bytes`` of output.

    For root, sudo must have been tried before (see ``RootShell.stream``). Raises ``Refused`` where the host cannot keep
    a command from becoming root, and ``Unreachable`` where the host does not answer or does not say how it ended.
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
            f"it does not answer any more, {timeout_s:g} s after the command began: the host hangs, and what became of "
            "the command is not known"
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
        raise Unreachable(shell.host, "what watched the command on it was killed, so how it ended is not known")
    ended = status if end == "exited" else None
    return CommandResult(shell.host, end, ended, _text(output.stdout), _text(stderr), output.duration_s)


def _said(stderr: bytes, nonce: str) -> tuple[bytes, str]:
    """Standard error without what the supervisor said there, and that."""
    before, mark, after = stderr.rpartition(f"\n{nonce} ".encode())
    if not mark:
        return stderr, ""
    word, _, rest = after.partition(b"\n")
    return before + rest, word.decode("ascii", "replace")


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
