"""A persistent shell: runs programs one after another over one channel. Without this shell, each program needs a new
channel and sudo.
"""

from __future__ import annotations

import queue
import secrets
import threading

from hostwright.common.errors import HostError, ProtocolError, Unreachable
from hostwright.common.quoting import sh
from hostwright.transport.exchange import UNKNOWN_STATUS, Deadline, Output
from hostwright.transport.frame import Stream
from hostwright.transport.root.rootshell import ProgramLimits, RootShell
from hostwright.transport.session import CAP_BYTES

LONGEST_S = 86_400.0  #: maximum lifetime in seconds of a persistent shell on a host (our choice)
_END_S = 1.0  #: seconds to wait for the end of a persistent shell (our choice)
#: input for one program, with the marks of ``transport.frame``; a separate shell runs the program
_PROGRAM = (
    "printf %%s%%s hwbegin- {nonce}; printf %%s%%s hwbegin- {nonce} >&2; /bin/sh -c %s </dev/null; "
    'end="{nonce} $?."; printf %%s%%s hwend- "$end"; printf %%s%%s hwend- "$end" >&2\n'
)


class KeptShell:
    """Runs POSIX sh programs on one host, one after another, as root or as the login user.

    All programs except the first share one channel. Background processes of a program must not write to its outputs.
    """

    def __init__(self, shell: RootShell, *, root: bool):
        self._shell = shell
        self._root = root
        self._proven = False
        self._talk: _Talk | None = None
        self._lock = threading.Lock()

    @property
    def host(self) -> str:
        """The host's inventory name."""
        return self._shell.host

    def run(self, script: str, *, timeout_s: float) -> Output:
        """Run a program with an empty standard input. Raises the exceptions of ``RootShell.attempt``."""
        with self._lock:
            output = self._in_kept(script, timeout_s) if self._proven else None
            if output is not None:
                return self._shell.checked(output)
            self._proven = True
            run = self._shell.attempt if self._root else self._shell.as_login_user
            return run(script, timeout_s=timeout_s)

    def _in_kept(self, script: str, timeout_s: float) -> Output | None:
        if self._talk and self._talk.open:
            return self._talk.run(script, timeout_s)
        self._talk = _Talk(self._shell, root=self._root)
        output = self._talk.run(script, timeout_s)
        self._shell.session.idle.append(self._make_room)
        return output

    def _make_room(self) -> None:
        """End the shell after its current program, to free a channel when the host refuses a new channel
        (MaxSessions).
        """
        if self._lock.acquire(timeout=_END_S):
            try:
                if self._talk:
                    self._talk.end()
            finally:
                self._lock.release()


class _Talk:
    def __init__(self, shell: RootShell, *, root: bool):
        self.open = True
        self._shell = shell
        self._input: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._unread = b""
        self._changed = threading.Condition()
        self._stdout, self._stderr = _Kept(""), _Kept("")
        self._received_bytes = 0
        self._error: HostError | None = None
        self._thread = threading.Thread(target=self._keep, args=(root,), name="kept-shell", daemon=True)
        self._thread.start()

    def run(self, script: str, timeout_s: float) -> Output | None:
        """Return the output of ``script``, or ``None`` if the shell ended before ``script`` started."""
        deadline, nonce = Deadline(timeout_s), secrets.token_hex(12)
        with self._changed:
            self._stdout, self._stderr = _Kept(nonce), _Kept(nonce)
            self._input.put(sh(_PROGRAM.format(nonce=nonce), script).encode("utf-8", "surrogateescape"))
            self._changed.wait_for(self._settled, deadline.left_s())
            late = not self._settled()
            self.open = self.open and self._ended() and self._received_bytes <= CAP_BYTES
            if not self.open:
                self._input.put(b"")
            return self._result(timeout_s - deadline.left_s(), late=late)

    def _result(self, took_s: float, *, late: bool) -> Output | None:
        outputs = bytes(self._stdout.data), bytes(self._stderr.data)
        if self._ended():
            return Output(self._stdout.status or 0, *outputs, False, took_s)
        if late:
            waited = f"/bin/sh did not end within {took_s:g} s: the host hangs, or the command needs longer"
            raise Unreachable(self._shell.host, f"{waited} ({self._shell.session.endpoint})", passing=True)
        if self._error and (self._stdout.begun or isinstance(self._error, ProtocolError)):
            raise self._error
        return Output(UNKNOWN_STATUS, *outputs, self._full(), took_s) if self._stdout.begun else None

    def end(self) -> None:
        """End the shell, and wait until the host has freed the shell's channel."""
        self.open = False
        self._input.put(b"")
        self._thread.join(_END_S)

    def read(self, size: int, /) -> bytes:
        data = self._unread or self._input.get()
        self._unread = data[size:]
        return data[:size]

    def _ended(self) -> bool:
        return None not in (self._stdout.status, self._stderr.status)

    def _full(self) -> bool:
        return len(self._stdout.data) + len(self._stderr.data) > CAP_BYTES

    def _settled(self) -> bool:
        return not self.open or self._full() or self._ended()

    def _keep(self, root: bool) -> None:
        limits: ProgramLimits = {
            # The limit covers the output of earlier programs, the output of the last program, and late data.
            "cap_bytes": 3 * CAP_BYTES,
            "on_stdout": lambda data: self._take(self._stdout, data),
            "on_stderr": lambda data: self._take(self._stderr, data),
        }
        try:
            if root:
                self._shell.stream("exec /bin/sh", stdin=self, timeout_s=LONGEST_S, **limits)
            else:
                self._shell.session.run("/bin/sh", stdin=self, timeout_s=LONGEST_S, **limits)
        except HostError as error:
            self._error = error
        finally:
            with self._changed:
                self.open = False
                self._input.put(b"")
                self._changed.notify_all()

    def _take(self, stream: _Kept, data: bytes) -> None:
        with self._changed:
            self._received_bytes += len(data)
            stream.data += stream.feed(data)
            if self._settled():
                self._changed.notify_all()


class _Kept(Stream):
    def __init__(self, nonce: str):
        super().__init__(nonce)
        self.data = bytearray()
