"""Start and stop of the process that serves a lab's BMCs, as one Redfish endpoint."""

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

_START_TIMEOUT_S = 60.0  # seconds to wait for the Redfish endpoint, which starts in 1 s on an idle machine
_LOOK_S = 0.05  # seconds between two checks of the Redfish endpoint, each of which opens a connection

#: shell code that enters control groups and detaches, so that the endpoint survives the calling command
_LAUNCH = """
count=$1; shift
while [ "$count" -gt 0 ]; do echo $$ >"$1" || exit; shift; count=$((count - 1)); done
exec setsid --fork "$@"
"""


def group(lab: Lab) -> str:
    """Return the Redfish endpoint's control group. `down` ends the endpoint, because this group is in the lab's
    group.
    """
    return f"hostwright-lab/{lab.name}/_bmc"


def wanted(lab: Lab) -> bool:
    """Return whether the lab has BMCs."""
    return lab.bmc.is_dir()


def running(lab: Lab) -> bool:
    """Return whether the process of the Redfish endpoint runs."""
    return bool(cgroups.processes(group(lab)))


def ensure(lab: Lab) -> Credentials:
    """Create the lab's BMCs, or restart a stopped Redfish endpoint; return the client credentials.

    The lab's bridge must exist. Raises `LabError` with the last output of an endpoint that does not start.
    """
    if importlib.util.find_spec("sushy_tools") is None:
        raise LabError("BMCs of lab hosts require sushy-tools; install it with `pip install -e .[dev]`")
    known = credentials.ensure(lab)
    if running(lab) and answers(lab):
        return known
    stop(lab)
    log = lab.bmc / "log"
    with locked("machine"):
        entries = [str(entry) for entry in cgroups.create(group(lab))]
    # With -B, root writes no .pyc files into the checkout. The user could not delete such files.
    serve = [sys.executable, "-B", "-m", "lab.bmc", lab.name]
    launch = ["sh", "-c", _LAUNCH, "hostwright-lab", str(len(entries)), *entries, *serve]
    with log.open("ab") as output:
        done = subprocess.run(launch, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=CHECKOUT, check=False)
    if done.returncode != 0:
        raise LabError(f"BMCs of lab {lab.name}: cannot enter the control group: {_tail(log)}")
    _wait(lab, log)
    return known


def stop(lab: Lab) -> None:
    """End the Redfish endpoint of ``lab``. A host in the installer then stays off."""
    cgroups.kill(group(lab))
    cgroups.remove(group(lab))


def forget(lab: Lab, host: str) -> None:
    """Delete the BMC settings of ``host`` after its removal from the lab."""
    for part in ("systems", "netboot", "faults"):
        (lab.bmc / part / f"{host}.json").unlink(missing_ok=True)


def answers(lab: Lab) -> bool:
    """Return whether the lab's Redfish endpoint accepts connections."""
    try:
        with socket.create_connection((str(lab.gateway.ip), BMC_PORT), timeout=2.0):
            return True
    except OSError:
        return False


def _wait(lab: Lab, log: Path) -> None:
    """Raise `LabError` if the endpoint ends before it accepts connections, or at the timeout."""

    def up() -> bool:
        if answers(lab):
            return True
        if not running(lab):
            raise LabError(f"BMCs of lab {lab.name}: stopped while starting; last lines of {log}:\n{_tail(log)}")
        return False

    silent = f"BMCs of lab {lab.name}: no connection to {lab.bmc_url}; read {log}"
    await_that(up, _START_TIMEOUT_S, lambda: silent, look_s=_LOOK_S)


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").strip().splitlines()[-8:])
