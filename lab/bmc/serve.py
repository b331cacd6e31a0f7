"""Starts and ends the process that serves the BMCs of a lab. Its control group tells whether it runs."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
from pathlib import Path

from hostwright.common.errors import LabError
from lab import cgroups
from lab.bmc import credentials
from lab.bmc.credentials import Credentials
from lab.config import BMC_PORT, CHECKOUT, Lab
from lab.locking import locked
from lab.waiting import await_that

_START_TIMEOUT_S = 60.0  # 1 s on a quiet machine, most of it Python's imports
_LOOK_S = 0.05  # each look is a connection

#: Enters the control groups and detaches, so that the endpoint outlives the command that started it.
_LAUNCH = """
count=$1; shift
while [ "$count" -gt 0 ]; do echo $$ >"$1" || exit; shift; count=$((count - 1)); done
exec setsid --fork "$@"
"""


def group(lab: Lab) -> str:
    """Return the control group of the endpoint, inside the lab's: `down` ends it with the hosts.

    No host can have this name (see `lab.config.require_host_name`).
    """
    return f"hostwright-lab/{lab.name}/_bmc"


def wanted(lab: Lab) -> bool:
    """Tell whether the lab has BMCs."""
    return lab.bmc.is_dir()


def running(lab: Lab) -> bool:
    """Tell whether the endpoint's process runs."""
    return bool(cgroups.processes(group(lab)))


def ensure(lab: Lab) -> Credentials:
    """Give the lab BMCs, or start them again if they do not run; return what a client needs.

    The bridge must exist. Raises `LabError` if the endpoint does not come up, with its last output.
    """
    if importlib.util.find_spec("sushy_tools") is None:
        raise LabError("BMCs for lab hosts need sushy-tools; `pip install -e .[dev]` brings it")
    known = credentials.ensure(lab)
    if running(lab) and answers(lab):
        return known
    stop(lab)
    log = lab.bmc / "log"
    with locked("machine"):
        entries = [str(entry) for entry in cgroups.create(group(lab))]
    # -B: root must leave no files in the user's checkout that the user cannot delete.
    serve = [sys.executable, "-B", "-m", "lab.bmc", lab.name]
    launch = ["sh", "-c", _LAUNCH, "hostwright-lab", str(len(entries)), *entries, *serve]
    with log.open("ab") as output:
        done = subprocess.run(launch, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=CHECKOUT, check=False)
    if done.returncode != 0:
        raise LabError(f"the BMCs of lab {lab.name} cannot enter their control group: {_tail(log)}")
    _wait(lab, log)
    return known


def stop(lab: Lab) -> None:
    """End the endpoint, if it runs; hosts stay as they are, and a host that is being installed stays off."""
    cgroups.kill(group(lab))
    cgroups.remove(group(lab))


def forget(lab: Lab, host: str) -> None:
    """Forget what the BMC of a removed host remembers."""
    for part in ("systems", "netboot", "faults"):
        (lab.bmc / part / f"{host}.json").unlink(missing_ok=True)


def answers(lab: Lab) -> bool:
    """Tell whether something accepts connections at the endpoint's address."""
    try:
        with socket.create_connection((str(lab.gateway.ip), BMC_PORT), timeout=2.0):
            return True
    except OSError:
        return False


def _wait(lab: Lab, log: Path) -> None:
    """Wait until the endpoint accepts connections. Raises `LabError` if it ends before, or at the timeout."""

    def up() -> bool:
        if answers(lab):
            return True
        if not running(lab):
            raise LabError(f"the BMCs of lab {lab.name} ended while starting; {log} says:\n{_tail(log)}")
        return False

    silent = f"the BMCs of lab {lab.name} do not answer on {lab.bmc_url}; look at {log}"
    await_that(up, _START_TIMEOUT_S, lambda: silent, look_s=_LOOK_S)


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").strip().splitlines()[-8:])
