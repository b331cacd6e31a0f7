"""A secret that a command prints: ``hostwright_become_password_command: pass show sudo/$HOSTWRIGHT_HOST``.

Every secret variable ``NAME`` can be replaced by ``NAME_command``, whose value is a command for ``/bin/sh``. The name
of the host is in the environment of the command, and never in its text. The command runs once for each host, when the
secret is first needed. The first line of its output is the secret.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from hostwright.common.errors import HostError
from hostwright.common.secret import MASK, Secret
from hostwright.common.text import short

SUFFIX = "_command"
#: time limit in seconds of a password command. The command may wait for a smart card or a fingerprint.
TIMEOUT_S = 60.0
LONGEST = 1024  #: maximum number of characters of a secret that a command prints
#: maximum number of password commands in parallel (our choice). Password managers limit the rate of requests.
AT_ONCE = 4
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_turns = threading.BoundedSemaphore(AT_ONCE)


class PrintedSecret(Secret):
    """A secret that is the first line of a command's output.

    ``reveal`` runs the command once, and raises ``HostError`` if the command prints no secret. Comparing, hashing and
    formatting the secret do not run the command. ``variable`` is the name of the variable that contains the command.
    """

    __slots__ = ("_command", "_error", "_host", "_lock", "_variable")
    _command: str
    _error: str
    _host: str
    _lock: threading.Lock
    _variable: str

    def __init__(self, command: str, host: str, variable: str):
        super().__init__("")
        given = {"command": command, "host": host, "variable": variable, "error": "", "lock": threading.Lock()}
        for name, value in given.items():
            object.__setattr__(self, f"_{name}", value)

    @property
    def known(self) -> bool:
        """Whether the command has run and printed the secret."""
        return bool(super().reveal())

    def reveal(self) -> str:
        """Return the secret in plain text. The first call runs the command.

        Raises ``HostError`` if the command printed no secret.
        """
        with self._lock:
            if not self.known and not self._error:
                try:
                    object.__setattr__(self, "_text", first_line(self._command, self._host))
                except ValueError as error:
                    object.__setattr__(self, "_error", str(error))
            if self._error:
                raise HostError(self._host, f"the command of {self._variable} printed no password: {self._error}")
            return super().reveal()

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrintedSecret):
            return False
        return (self._command, self._host) == (other._command, other._host)

    def __hash__(self) -> int:
        return hash((PrintedSecret, self._command, self._host))


def get_all(secrets: Iterable[Secret | None]) -> None:
    """Run the commands of these secrets in parallel. A failure is reported only when a host needs the secret."""

    def get(secret: PrintedSecret) -> None:
        with suppress(HostError):
            secret.reveal()

    unknown = [secret for secret in secrets if isinstance(secret, PrintedSecret) and not secret.known]
    if unknown:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(get, unknown))


def at_hand(secret: Secret | None) -> bool:
    """Return whether the text of ``secret`` is known, so that no command has to run to get it."""
    return secret.known if isinstance(secret, PrintedSecret) else bool(secret)


def first_line(command: str, host: str, timeout_s: float = TIMEOUT_S) -> str:
    """Run ``command`` for ``host``, and return the first line of its output.

    Raises ``ValueError`` if the command fails, or if the line is empty, too long or has control characters.
    """
    with _turns:
        status, out, err = _run(command, host, timeout_s)
    line = out.partition("\n")[0].removesuffix("\r")
    if status is None:
        raise ValueError("the command did not end within its time limit")
    if status != 0:
        last = (err.strip().splitlines() or [""])[-1]
        hint = short(last.replace(line, MASK) if line else last)
        raise ValueError(f"the command ended with status {status}" + (f": {hint}" if hint else ""))
    if not line:
        raise ValueError("the first line of its output is empty")
    if len(line) > LONGEST or _CONTROL.search(line):
        raise ValueError("the first line of its output is too long, or contains a control character")
    return line


def _run(command: str, host: str, timeout_s: float) -> tuple[int | None, str, str]:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOSTWRIGHT_HOST": host},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None, "", ""
    finally:
        if process.returncode is None:
            # On macOS, ``PermissionError`` means that all processes have ended.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")
