"""A root shell: an open session, with the password and the path of sudo that the login user needs to become root.

Every program that runs as root on a host runs through ``RootShell``. It checks that sudo started the program, and that
no signal killed it (as when the host shuts down).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

from hostwright.common.errors import ScriptFailed, Unreachable
from hostwright.transport.exchange import UNKNOWN_STATUS
from hostwright.transport.root.become import check_become, root_command, wrap
from hostwright.transport.root.packing import COMMAND, UNPACKED_STATUS, packed, room, unpacked

if TYPE_CHECKING:
    from hostwright.common.secret import Secret
    from hostwright.transport import Output, Readable, Session

_KILLED = (129, 137, 143)  #: exit statuses of programs that SIGHUP, SIGKILL or SIGTERM ended
_LINES = 15  #: maximum number of lines kept from the end of a failed program's standard error
_LINE_CHARACTERS = 300  #: maximum number of characters kept of each line of a failed program's standard error


class ProgramLimits(TypedDict, total=False):
    """Further arguments of ``Session.run``: limits besides the timeout, and callbacks for the output."""

    idle_s: float | None
    cap_bytes: int
    on_stdout: Callable[[bytes], None] | None
    on_stderr: Callable[[bytes], None] | None


class RootShell:
    """Runs POSIX sh programs as root on one host. Close it, or use it as a context manager. Thread-safe."""

    __slots__ = ("_password", "_sudo", "session")

    def __init__(self, session: Session, password: Secret | None = None, sudo: str | None = None):
        self.session = session  #: session for commands that do not need root
        self._password = password
        self._sudo = sudo  #: path of sudo from the inventory; ``None`` for one of ``SUDO_PLACES``

    @property
    def host(self) -> str:
        """The host's inventory name."""
        return self.session.host.name

    def run(self, script: str, *, timeout_s: float, failure: str, **limits: Unpack[ProgramLimits]) -> Output:
        """Run a POSIX sh program that must succeed, for at most ``timeout_s`` seconds.

        The error text begins with ``failure`` ("its lock cannot be changed") and ends with the last line of standard
        error. For ``limits``, see ``Session.run``. Raises ``ScriptFailed`` for an exit status other than 0, and the
        exceptions of ``attempt``.

        >>> shell.run("echo 3.5", timeout_s=10, failure="its load cannot be read").stdout
        b'3.5\\n'
        >>> shell.run("echo no such disk >&2; exit 4", timeout_s=10, failure="its disk cannot be read")
        Traceback (most recent call last):
        hostwright.common.errors.ScriptFailed: gpu01: its disk cannot be read: no such disk
        """
        output = self.attempt(script, timeout_s=timeout_s, **limits)
        if output.status != 0:
            raise self.failed(failure, output)
        return output

    def attempt(self, script: str, *, timeout_s: float, as_user: str = "", **limits: Unpack[ProgramLimits]) -> Output:
        """Run the program ``as_user`` as the login user, then ``script`` as root. The caller checks the exit status.

        Both programs have an empty standard input, and together at most ``timeout_s`` seconds. The exit status is that
        of ``script``, or of ``as_user`` if ``script`` is empty. Raises ``BecomeError`` if the login user cannot become
        root, and ``Unreachable`` on a timeout, a lost connection, or if the program was killed.

        >>> shell.attempt("test -e /no/such/file", timeout_s=10).status
        1
        """
        program = wrap(as_user, script, password=self._password, sudo=self._sudo)
        return self.checked(self.session.run("/bin/sh", stdin=program, timeout_s=timeout_s, **limits))

    def collect(
        self,
        script: str,
        *,
        as_user: str = "",
        nonce: str = "",
        timeout_s: float,
        cap_bytes: int,
        idle_s: float | None = None,
    ) -> Output:
        """Run a long program like ``attempt``, but compress the program and its output. The output arrives in one
        piece.

        ``cap_bytes`` limits the unpacked output. ``nonce`` is the part of the program that differs for each host.
        Raises the exceptions of ``attempt``, and ``ProtocolError`` if the compressed output is damaged or incomplete.

        >>> shell.collect("seq 100000; exit 4", timeout_s=10, cap_bytes=10**6).stdout.count(b"\\n")
        100000
        """
        program = wrap(as_user, script, password=self._password, sudo=self._sudo)
        limits: ProgramLimits = {"cap_bytes": room(cap_bytes), "idle_s": idle_s}
        data = packed(program, b"" if self._password else nonce.encode())
        output = self.session.run(COMMAND, stdin=data, timeout_s=timeout_s, name="/bin/sh", **limits)
        if output.status == UNPACKED_STATUS:
            output = self.session.run("/bin/sh", stdin=program, timeout_s=timeout_s - output.duration_s, **limits)
        else:
            output = unpacked(self.host, output, cap_bytes)
        return self.checked(output)

    def as_login_user(self, script: str, *, timeout_s: float) -> Output:
        """Run a program as the login user, in the user's environment; the caller checks the exit status.

        Raises ``Unreachable`` as in ``attempt``.
        """
        return self.checked(self.session.run("/bin/sh", stdin=script.encode(), timeout_s=timeout_s))

    def stream(
        self, script: str, *arguments: object, stdin: Readable, timeout_s: float, **limits: Unpack[ProgramLimits]
    ) -> Output:
        """Run a program as root that reads ``stdin``, with ``arguments`` as ``$1``…; the caller checks the exit status.

        Call ``run`` or ``attempt`` first to check that sudo works: otherwise sudo would read the data as passwords.
        Raises ``Unreachable`` as in ``attempt``.

        >>> shell.stream('head -c "$1"', 5, stdin=io.BytesIO(b"0123456789"), timeout_s=10).stdout
        b'01234'
        """
        command, opening = root_command(script, *arguments, password=self._password, sudo=self._sudo)
        opened = _Opened(opening, stdin)
        return self.checked(self.session.run(command, stdin=opened, timeout_s=timeout_s, **limits))

    def failed(self, failure: str, output: Output) -> ScriptFailed:
        """Return the error for a failed program, with ``failure``, the exit status and the end of standard error."""
        lines = [
            "".join(char for char in line if char.isprintable()).strip()[:_LINE_CHARACTERS]
            for line in output.stderr.decode("utf-8", errors="replace").splitlines()
        ]
        return ScriptFailed(self.host, failure, output.status, tuple(line for line in lines if line)[-_LINES:])

    def checked(self, output: Output) -> Output:
        """Return ``output``, unless the program was killed or sudo failed.

        Raises ``Unreachable`` for a killed program, because a host that shuts down kills programs, and ``BecomeError``
        if sudo failed.
        """
        by_signal = output.status == UNKNOWN_STATUS and not output.truncated
        if by_signal or output.status in _KILLED:
            sentence = (
                "the program that Hostwright ran was killed on the host: the host is going down, or a user killed the "
                "program"
            )
            raise Unreachable(self.host, sentence, passing=True)
        check_become(self.host, output)
        return output

    def close(self) -> None:
        """End the session. A second call does nothing."""
        self.session.close()

    def __enter__(self) -> RootShell:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Opened:
    def __init__(self, opening: bytes, rest: Readable):
        self._opening = opening
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        if self._opening:
            piece, self._opening = self._opening[:size], self._opening[size:]
            return piece
        return self._rest.read(size)
