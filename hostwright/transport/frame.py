"""A command in its frame: any login shell hands it to ``/bin/sh`` unchanged, and its output is told from the shell's.

sshd gives a command to the user's login shell, which need not be a POSIX shell, and whose start files may print
something, wait for input or start another shell. So the command line is a constant that all shells read alike (in
single quotes, without quote, backslash, ``!`` and line break), and the program comes over standard input, but not
before ``/bin/sh`` has reported itself: nothing else ever reads it. What stands before that report, and after the end,
is not the command's.
"""

from __future__ import annotations

import re
import secrets

#: With these, start files change what our tools print: a start file for each bash, traces, directories that cd prints,
#: colours, block sizes. (A ``bash -c`` that sees sshd's variables and a SHLVL below 2 reads ~/.bashrc.)
_UNSET = (
    *("BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "CDPATH", "POSIXLY_CORRECT", "BLOCK_SIZE", "DF_BLOCK_SIZE"),
    *("DU_BLOCK_SIZE", "LS_BLOCK_SIZE", "TIME_STYLE", "QUOTING_STYLE", "GREP_OPTIONS", "CLICOLOR_FORCE"),
)
#: The marks are printed in two parts: a shell that shows its command line does not print them. A program that did not
#: come whole is not run. It runs in a subshell, so that ``exit`` leaves the end to us.
_LINE = (
    "/usr/bin/env {unset} SHLVL=2 /bin/sh -c '"
    "printf %s%s hwbegin- {nonce}; printf %s%s hwbegin- {nonce} >&2; "
    "program=$(/usr/bin/head -c {size}); case $program in *{nonce}) ;; *) exit 1;; esac; "
    '(eval "$program"); end="{nonce} $?."; '
    'printf %s%s hwend- "$end"; printf %s%s hwend- "$end" >&2\''
)
NOISE_KEPT_BYTES = 4096  #: of what a login shell prints; it is shown in a note
NOISE_CAP_BYTES = 1 << 20  #: our choice: a login shell that prints more than this does not come to an end

UNREADABLE = 255  #: the status of a command whose end names none: only a host that makes up a frame writes that
_STATUS, _DIGITS = re.compile(rb"([0-9]{1,3})\."), re.compile(rb"[0-9]{0,3}")


class Stream:
    """Standard output or error of a framed command. ``feed`` gives back what is the command's own."""

    def __init__(self, nonce: str):
        self._begin = f"hwbegin-{nonce}".encode()
        self._end = f"hwend-{nonce} ".encode()
        self._held = b""
        self.noise = b""  #: the beginning of what came before the command
        self.noise_bytes = 0
        self.after_bytes = 0  #: what came after the end
        self.begun = False
        self.status: int | None = None  #: of the command, once this stream has ended

    def feed(self, data: bytes) -> bytes:
        """What of the next piece is the command's. The beginning of a mark is kept until it is known to be none."""
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
        """What is still kept when nothing comes any more."""
        held, self._held = self._held, b""
        if self.begun:
            return held
        self._keep(held)
        return b""

    def _keep(self, noise: bytes) -> None:
        self.noise_bytes += len(noise)
        self.noise = (self.noise + noise)[:NOISE_KEPT_BYTES]


class Frame:
    """``line`` is what the login shell gets, ``program`` what goes to standard input once ``stdout`` has begun."""

    def __init__(self, command: str):
        nonce = secrets.token_hex(12)
        self.program = f"{command}\n#{nonce}".encode("utf-8", "surrogateescape")
        unset = " ".join(f"-u {name}" for name in _UNSET)
        self.line = _LINE.format(unset=unset, nonce=nonce, size=len(self.program))
        self.stdout, self.stderr = Stream(nonce), Stream(nonce)

    @property
    def ended(self) -> bool:
        """Whether both streams have come to their end."""
        return self.stdout.status is not None and self.stderr.status is not None

    @property
    def noise(self) -> bytes:
        """The beginning of what the login shell printed before the command, on either stream."""
        return self.stdout.noise + self.stderr.noise

    @property
    def noise_bytes(self) -> int:
        """How much came that is not the command's, on both streams, before it and after its end."""
        return sum(stream.noise_bytes + stream.after_bytes for stream in (self.stdout, self.stderr))

    def rest(self) -> tuple[bytes, bytes]:
        """What is the command's of what either stream still keeps, when nothing comes any more."""
        return self.stdout.rest(), self.stderr.rest()
