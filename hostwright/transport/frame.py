"""Frames a command, so that any login shell passes the command to ``/bin/sh`` unchanged.

The frame also separates the command's output from the login shell's. sshd passes a command to the user's login shell,
which may not be a POSIX shell. The shell's startup files may print something, wait for input or start another shell.
Therefore the command line is a constant that all shells parse alike (in single quotes, without quote, backslash, ``!``
or line break). The program is sent over standard input after the begin mark of ``/bin/sh``. Output before the begin
mark and after the end mark is not output of the command.
"""

from __future__ import annotations

import re
import secrets

#: names of environment variables that would change the output of tools
_UNSET = (
    *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "POSIXLY_CORRECT", "BLOCK_SIZE", "DF_BLOCK_SIZE"),
    *("DU_BLOCK_SIZE", "LS_BLOCK_SIZE", "TIME_STYLE", "QUOTING_STYLE", "GREP_OPTIONS", "CLICOLOR_FORCE"),
)
#: command line for the login shell, with marks in two parts, because some shells echo the command line
_LINE = (
    "/usr/bin/env {unset} SHLVL=2 /bin/sh -c '"
    "printf %s%s hwbegin- {nonce}; printf %s%s hwbegin- {nonce} >&2; "
    "program=$(/usr/bin/head -c {size}); case $program in *{nonce}) ;; *) exit 1;; esac; "
    '(eval "$program"); end="{nonce} $?."; '
    'printf %s%s hwend- "$end"; printf %s%s hwend- "$end" >&2\''
)
NOISE_KEPT_BYTES = 4096  #: maximum number of bytes kept of a login shell's own output, to quote in a note
#: maximum number of bytes that a login shell may print before a command starts (our choice)
NOISE_CAP_BYTES = 1 << 20

UNREADABLE = 255  #: exit status of a command whose end mark contains no exit status, as from a malicious host
_STATUS, _DIGITS = re.compile(rb"([0-9]{1,3})\."), re.compile(rb"[0-9]{0,3}")


class Stream:
    """Standard output or error of a framed command."""

    def __init__(self, nonce: str):
        self._begin = f"hwbegin-{nonce}".encode()
        self._end = f"hwend-{nonce} ".encode()
        self._held = b""
        self.noise = b""  #: first bytes that the login shell printed before the begin mark
        self.noise_bytes = 0
        self.after_bytes = 0  #: number of bytes received after the end mark
        self.begun = False
        #: exit status of the command; ``None`` until the end mark arrives
        self.status: int | None = None

    def feed(self, data: bytes) -> bytes:
        """Return the command's own output in the newly received bytes ``data``.

        Last bytes that may be the start of a mark are returned by the next call.
        """
        if self.status is not None:
            self.after_bytes += len(data)
            return b""
        data = self._held + data
        if not self.begun:
            before, mark, data = data.partition(self._begin)
            if not mark:
                self._held = before[-len(self._begin) + 1 :]
                self._keep(before[: len(before) - len(self._held)])
                return b""
            self._keep(before)
            self.begun = True
        own, mark, after = data.partition(self._end)
        if mark:
            whole = _STATUS.match(after)
            if not whole and _DIGITS.fullmatch(after):
                self._held = mark + after
            else:
                self.status, self._held = int(whole[1]) if whole else UNREADABLE, b""
            return own
        held = next((size for size in range(len(self._end) - 1, 0, -1) if data.endswith(self._end[:size])), 0)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def rest(self) -> bytes:
        """Return the bytes that ``feed`` has not returned. Call this after the connection has ended."""
        held, self._held = self._held, b""
        if self.begun:
            return held
        self._keep(held)
        return b""

    def _keep(self, noise: bytes) -> None:
        self.noise_bytes += len(noise)
        self.noise = (self.noise + noise)[:NOISE_KEPT_BYTES]


class Frame:
    """A command in a frame of marks. ``line`` is the command line for the login shell.

    ``program`` must be sent over standard input after the begin mark has arrived on ``stdout``.
    """

    def __init__(self, command: str):
        nonce = secrets.token_hex(12)
        self.program = f"{command}\n#{nonce}".encode("utf-8", "surrogateescape")
        unset = " ".join(f"-u {name}" for name in _UNSET)
        self.line = _LINE.format(unset=unset, nonce=nonce, size=len(self.program))
        self.stdout, self.stderr = Stream(nonce), Stream(nonce)

    @property
    def ended(self) -> bool:
        """Whether the end marks have arrived on both streams."""
        return self.stdout.status is not None and self.stderr.status is not None

    @property
    def noise(self) -> bytes:
        """The first bytes that the login shell printed before the command, on both streams."""
        return self.stdout.noise + self.stderr.noise

    @property
    def noise_bytes(self) -> int:
        """Number of bytes before the begin marks and after the end marks, on both streams."""
        return sum(stream.noise_bytes + stream.after_bytes for stream in (self.stdout, self.stderr))

    def rest(self) -> tuple[bytes, bytes]:
        """Return the unreturned bytes of standard output and error. Call this after the connection has ended."""
        return self.stdout.rest(), self.stderr.rest()
