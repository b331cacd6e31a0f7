"""Who runs Hostwright: the operator, this machine, and whether one of its processes is still alive."""

from __future__ import annotations

import getpass
import hashlib
import hmac
import os
import socket
import subprocess
from pathlib import Path

_NAME_CHARACTERS = 200  #: the environment may hold anything as a user's name
_MACHINE_ID = Path("/etc/machine-id")
_PROC = Path("/proc")
_STATE, _START = 0, 19  #: fields 3 and 22 of /proc/PID/stat (proc(5)), counted after the name of the program
_PS_TIMEOUT_S = 10.0  #: ps answers in milliseconds; a machine that is out of memory may be slower
_BOOT_CHARACTERS = 8  #: of the boot id: start times are counted from the boot, so two boots may give the same


def operator() -> str:
    """``user@machine``, the operator's name in locks and records; behind sudo, the user who called it."""
    name = f"{_user()}@{socket.gethostname()}"
    return "".join(character if character.isprintable() else "?" for character in name)[:_NAME_CHARACTERS]


def machine_id() -> str:
    """A name that no other machine has, stable across reboots; without a machine id, a hash of the host name.

    The id itself must not be disclosed to other machines (machine-id(5)), so this is a keyed hash of it.
    """
    try:
        known = _MACHINE_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        known = ""
    return hmac.new((known or socket.gethostname()).encode(), b"hostwright", hashlib.sha256).hexdigest()[:16]


def process_start(pid: int) -> str:
    """When a process of this machine began, as text for comparison; empty if it is gone or the system does not tell.

    Process ids are reused, but together with this they are unique. Linux gives it in /proc, to a hundredth of a second
    and independent of the clock; elsewhere ps(1) gives it, to the second.
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
    """Whether the process that had this id and ``process_start`` is still alive.

    If the system does not tell start times, any process with that id counts: it is safer to take a dead one for alive.
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
