"""Faults that tests inject into the BMCs of lab hosts, through files.

To simulate an unreachable BMC, set the host's ``hostwright_bmc`` to a closed port.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from hostwright.common.errors import LabError
from lab.config import Lab, require_host_name
from lab.records import write_atomically


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults to inject into one host's BMC or installer."""

    lies_on: bool = False  #: whether the BMC always reports On and ignores power-on requests
    install_never_ends: bool = False  #: whether the installer hangs after fetching the seed
    reset_fails: bool = False  #: whether the BMC responds to every reset with HTTP status 500
    delay_s: float = 0.0  #: seconds of delay before each response about the host


def set_faults(lab: Lab, host: str, faults: Faults) -> None:
    """Replace the faults of the BMC of ``host``; ``Faults()`` clears them.

    Raises `LabError` if the lab has no BMCs.
    """
    require_host_name(host)
    if not lab.bmc.is_dir():
        raise LabError(f"lab {lab.name} has no BMCs; create them with `python -m lab up --bmc`")
    file = lab.bmc / "faults" / f"{host}.json"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps(asdict(faults)))


def read_faults(lab: Lab, host: str) -> Faults:
    """Return the faults of the BMC of ``host``."""
    file = lab.bmc / "faults" / f"{host}.json"
    return Faults(**json.loads(file.read_text())) if file.exists() else Faults()
