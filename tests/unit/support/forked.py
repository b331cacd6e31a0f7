"""Runs the command in a process forked from one that has imported Hostwright, which saves a second per call.

A call has the same environment as ``python -m hostwright``: its own session, working directory, environment variables
and streams. Start and end of Python itself are not covered: tests of these start the real program.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.places import PROJECT

LONGEST_BYTES = 1 << 20  #: for a call's arguments and environment
STARTS_PYTHON = ("PYTHON", "LC_", "LANG")  #: variables that Python reads at its start


def run(words: Sequence[str], *, cwd: Path, env: Mapping[str, str], text: str = "") -> subprocess.CompletedProcess[str]:
    """Call ``hostwright`` with these arguments."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(text.encode())
        given.seek(0)
        call = {"words": list(words), "cwd": str(cwd), "env": dict(env)}
        started = {name: value for name, value in env.items() if name.startswith(STARTS_PYTHON)}
        status = _Server.of(json.dumps(started)).call(call, (given, out, err))
        return subprocess.CompletedProcess(list(words), status, _read(out), _read(err))


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


class _Server:
    """A process that has imported Hostwright. It ends with this process."""

    def __init__(self, started: Mapping[str, str]):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {"PATH": os.environ["PATH"], **started}
        command = [sys.executable, "-c", f"from {__name__} import serve; serve({theirs.fileno()})"]
        with theirs:
            subprocess.Popen(command, cwd=PROJECT, env=env, pass_fds=[theirs.fileno()])
        self._socket, self._one_at_a_time = ours, threading.Lock()

    @classmethod
    @cache
    def of(cls, started: str) -> _Server:
        """The server that was started with these variables."""
        return cls(json.loads(started))

    def call(self, call: Mapping[str, Any], streams: Sequence[IO[bytes]]) -> int:
        """The exit status of a call with these streams."""
        with self._one_at_a_time:
            socket.send_fds(self._socket, [json.dumps(call).encode()], [stream.fileno() for stream in streams])
            return int(self._socket.recv(LONGEST_BYTES) or b"70")


def serve(number: int) -> None:
    """Fork for each call received over a socket."""
    from hostwright.cli import exits, opening, program  # noqa: F401
    from hostwright.plan.roles.role import discover

    discover()
    gc.freeze()
    with socket.socket(fileno=number) as calls:
        while True:
            request, fds, _, _ = socket.recv_fds(calls, LONGEST_BYTES, 3)
            if not request:
                return
            if not (child := os.fork()):
                calls.close()
                _call(json.loads(request), fds)
            for fd in fds:
                os.close(fd)
            calls.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _call(call: Mapping[str, Any], fds: Sequence[int]) -> None:
    """Run a call in this process, and exit."""
    from hostwright import __main__

    status = 1
    try:
        os.setsid()
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
            os.close(fd)
        os.chdir(call["cwd"])
        os.environ.clear()
        os.environ.update(call["env"])
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        sys.argv = [str(__main__.__file__), *call["words"]]
        status = _ended(__main__.main)
        threading._shutdown()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _ended(main: Any) -> int:
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0
    except BaseException:  # noqa: BLE001 - as Python does
        traceback.print_exc()
        return 1
    return 0
