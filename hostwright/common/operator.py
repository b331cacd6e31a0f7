"""Identifies the operator and this machine, and checks whether a process is still alive."""

from __future__ import annotations

import getpass
import hashlib
import hmac
import os
import socket
import subprocess
from pathlib import Path

_NAME_CHARACTERS = 200  #: maximum number of characters to keep of a user's name from the environment
_MACHINE_ID = Path("/etc/machine-id")
_PROC = Path("/proc")
_STATE, _START = 0, 19  #: indices of fields 3 and 22 of /proc/PID/stat (proc(5)) after the program's name
#: time limit in seconds for ``ps``
_PS_TIMEOUT_S = 10.0
#: number of characters to keep of the boot id. The boot id makes start times unique across reboots.
_BOOT_CHARACTERS = 8


def operator() -> str:
    """Return ``user@machine``, for locks and records. Under sudo, ``user`` is the user who called sudo."""
    name = f"{_user()}@{socket.gethostname()}"
    return "".join(character if character.isprintable() else "?" for character in name)[:_NAME_CHARACTERS]


def machine_id() -> str:
    """Return a unique identifier of this machine that survives reboots.

    The identifier is a keyed hash, because the machine id itself must not be disclosed (machine-id(5)). If there is no
    machine id, the host name is used instead.
    """
    try:
        known = _MACHINE_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        known = ""
    return hmac.new((known or socket.gethostname()).encode(), b"hostwright", hashlib.sha256).hexdigest()[:16]


def process_start(pid: int) -> str:
    """Return the start time of process ``pid`` as text for comparison.

    The text is empty if the process has ended or the time is unknown. Process ids are reused, but an id together with a
    start time is unique.
    """
    return _start_in_proc(pid) if _PROC.is_dir() else _start_by_ps(pid)


def _start_in_proc(pid: int) -> str:
    try:
        fields = (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("ascii")[:_BOOT_CHARACTERS]
    except OSError:
        return ""
    return "" if len(fields) <= _START or fields[_STATE] in "ZX" else f"{fields[_START]}@{boot}"


def _start_by_ps(pid: int) -> str:
    try:
        shown = subprocess.run(
            ["ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)],
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PS_TIMEOUT_S,
            check=True,
        ).stdout.decode("ascii", "replace")
    except (OSError, subprocess.SubprocessError):
        return ""
    state, _, started = shown.strip().partition(" ")
    return "" if state.startswith("Z") else " ".join(started.split())


def pid_alive(pid: int, started: str) -> bool:
    """Return whether the process ``pid`` is alive and started at ``started``, a result of ``process_start``.

    If the system reports no start times, any process with this id counts as alive, because this is the safer mistake.
    """
    if process_start(os.getpid()):
        return bool(started) and process_start(pid) == started
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _user() -> str:
    if os.geteuid() == 0 and os.environ.get("SUDO_USER"):
        return os.environ["SUDO_USER"]
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # The user of a container may have no name.
        return f"uid{os.getuid()}"
