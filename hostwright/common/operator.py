"""The operator, this machine, and whether a process on this machine is still alive."""

from __future__ import annotations

import getpass
import hashlib
import hmac
import os
import socket
import subprocess
from pathlib import Path

_NAME_CHARACTERS = 200  #: limit for a user's name, which comes from the environment
_MACHINE_ID = Path("/etc/machine-id")
_PROC = Path("/proc")
_STATE, _START = 0, 19  #: fields 3 and 22 of /proc/PID/stat (proc(5)), counted after the program's name
_PS_TIMEOUT_S = 10.0  #: ps takes milliseconds; a machine without free memory may be slower
#: length of the part of the boot id that is added to a start time, which may repeat after a reboot
_BOOT_CHARACTERS = 8


def operator() -> str:
    """Return ``user@machine``, the operator's name in locks and records. Under sudo, the user is the caller."""
    name = f"{_user()}@{socket.gethostname()}"
    return "".join(character if character.isprintable() else "?" for character in name)[:_NAME_CHARACTERS]


def machine_id() -> str:
    """Return an identifier of this machine, unique and stable across reboots.

    It is a keyed hash of the machine id, which must not be disclosed itself (machine-id(5)), or else of the host name.
    """
    try:
        known = _MACHINE_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        known = ""
    return hmac.new((known or socket.gethostname()).encode(), b"hostwright", hashlib.sha256).hexdigest()[:16]


def process_start(pid: int) -> str:
    """Return the start time of a process, as text for comparison; empty if the process is gone or the time is unknown.

    Process ids are reused, but a process id with its start time is unique. Linux has the time in /proc, to 0.01 s and
    independent of the clock. On other systems ps(1) prints it, to the second.
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
    """Whether the process with this id and ``process_start`` is still alive.

    If the system reports no start times, any process with this id counts as alive, which is the safer mistake.
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
    except (KeyError, OSError):  # a container's user may have no name
        return f"uid{os.getuid()}"
