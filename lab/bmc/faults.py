"""BMCs that misbehave, for tests: faults are set from outside, never over Redfish.

An unreachable BMC needs no fault here: point the host's ``hostwright_bmc`` at a port where nobody listens.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hostwright.common.errors import LabError
from lab.config import Lab, require_host_name
from lab.records import write_atomically


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong with the BMC of one host, or with what it starts."""

    lies_on: bool = False  #: always reports On, and accepts orders to power on without doing anything
    install_never_ends: bool = False  #: the installer fetches its seed and then hangs
    reset_fails: bool = False  #: answers every reset with status 500
    delay_s: float = 0.0  #: delay before it answers anything about the host


def set_faults(lab: Lab, host: str, faults: Faults) -> None:
    """Give the BMC of ``host`` exactly these faults; ``Faults()`` repairs it. Raises `LabError` without BMCs."""
    require_host_name(host)
    if not lab.bmc.is_dir():
        raise LabError(f"lab {lab.name} has no BMCs; `python -m lab up --bmc` makes them")
    file = lab.bmc / "faults" / f"{host}.json"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps(asdict(faults)))


def read_faults(lab: Lab, host: str) -> Faults:
    """Return the faults of the BMC of ``host``."""
    file = lab.bmc / "faults" / f"{host}.json"
    return Faults(**json.loads(file.read_text())) if file.exists() else Faults()
