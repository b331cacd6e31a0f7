"""Runs commands from the inventory, on this machine or as root on a host.

The parameters of such a command are environment variables, never part of its text.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hostwright.common.quoting import sh
from hostwright.transport.root.rootshell import RootShell

CAP_BYTES = 64 * 1024  #: number of bytes to keep from the end of a command's output
LINES = 15  #: maximum number of last output lines that a message shows
GRACE_S = 10.0  #: seconds between SIGTERM and SIGKILL for a command that exceeds its time limit (our choice)
#: time limit in seconds for reading a command's output after the command's end. A background process may keep the pipe
#: open.
_LAST_WORDS_S = 1.0
_ROUND_TRIP_S = 60.0  #: seconds that the connection to a host may add to the time limit of a command


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: the exit status (``None`` after a timeout) and the last lines of output."""

    status: int | None
    lines: tuple[str, ...] = ()


def run_here(
    command: str, environment: Mapping[str, str], timeout_s: float, *, stdin: bytes = b"", folder: Path | None = None
) -> Ended:
    """Run ``command`` on this machine for at most ``timeout_s`` seconds, in a new process group.

    The command runs in ``folder``, or by default in the working directory. Raises ``OSError`` if the directory is
    missing.
    """
    # With a pipe, writing would fail if the command exits without reading its input.
    with tempfile.TemporaryFile() as given:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            cwd=folder,
            start_new_session=True,
        )
        return _ended(process, timeout_s)


def _ended(process: subprocess.Popen[bytes], timeout_s: float) -> Ended:
    tail = bytearray()
    reader = threading.Thread(target=_keep_tail, args=(process, tail), name="hook-output", daemon=True)
    reader.start()
    status: int | None = None
    with suppress(subprocess.TimeoutExpired):
        try:
            status = process.wait(timeout_s)
        finally:
            if process.returncode is None:
                _end_group(process)
    reader.join(_LAST_WORDS_S)
    return Ended(status, _last_lines(bytes(tail)))


def _keep_tail(process: subprocess.Popen[bytes], tail: bytearray) -> None:
    """Read the output of ``process`` until the pipe is closed. ``tail`` keeps the last ``CAP_BYTES`` of the output."""
    assert process.stdout is not None  # noqa: S101 (opened as a pipe)
    with process.stdout as stream:
        while chunk := os.read(stream.fileno(), CAP_BYTES):
            tail += chunk
            del tail[:-CAP_BYTES]


def _end_group(process: subprocess.Popen[bytes]) -> None:
    # On macOS, killpg raises PermissionError if all processes have ended.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


#: shell program that runs a command and prints the status of the command. The program itself exits with 0 even if the
#: command fails.
_ON_HOST = """\
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
timeout -k "$grace" "$limit" /bin/sh -c "$command" >"$out" 2>&1 </dev/null
status=$?
tail -c "$cap" "$out"
echo "hostwright-hook $status" >&2
"""


def run_there(shell: RootShell, command: str, environment: Mapping[str, str], timeout_s: float) -> Ended:
    """Run ``command`` as root on a host. After ``timeout_s`` seconds, the command's process group is killed.

    Raises ``Unreachable`` if the connection is lost or the host goes down, and ``BecomeError`` if the login user cannot
    become root.
    """
    exports = "".join(sh("export %s\n", f"{name}={value}") for name, value in environment.items())
    settings = sh("grace=%s limit=%s cap=%s command=%s\n", f"{GRACE_S:g}", f"{timeout_s:.3f}", CAP_BYTES, command)
    output = shell.attempt(exports + settings + _ON_HOST, timeout_s=timeout_s + GRACE_S + _ROUND_TRIP_S)
    report = re.search(rb"^hostwright-hook ([0-9]{1,3})$", output.stderr, re.MULTILINE)
    if not report:  # A missing report means that the command was not started.
        return Ended(output.status, _last_lines(output.stderr))
    status = int(report[1])
    # timeout(1) exits with 124, or with 137 after SIGKILL.
    late = status in (124, 137) and output.duration_s >= timeout_s
    return Ended(None if late else status, _last_lines(output.stdout))


def _last_lines(data: bytes) -> tuple[str, ...]:
    lines = data.decode("utf-8", errors="replace").splitlines()
    return tuple(line.rstrip() for line in lines if line.strip())[-LINES:]
