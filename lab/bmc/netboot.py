"""Replacement of DHCP and PXE: the URL from which a host's installer fetches its seed (settings).

On real hardware, the site configures DHCP and PXE. In the lab, a test or a user sets the URL, also for virtual media.
"""

from __future__ import annotations

import json
import os

from hostwright.common.errors import LabError
from lab.config import Lab, require_host_name
from lab.records import write_atomically

#: default URL of a host's seed, with ``{bridge}`` for the bridge's address and ``{host}`` for the host's name
DEFAULT = "http://{bridge}:8098/{host}/"


def set_seed(lab: Lab, host: str, url: str) -> None:
    """Set the URL from which the installer of ``host`` fetches its seed. Raises `LabError` if the lab has no BMCs."""
    require_host_name(host)
    if not lab.bmc.is_dir():
        raise LabError(f"lab {lab.name} has no BMCs; create them with `python -m lab up --bmc`")
    file = lab.bmc / "netboot" / f"{host}.json"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps({"seed": url}))


def seed_url(lab: Lab, host: str) -> str:
    """Return the URL from which the installer of ``host`` fetches its seed, with a trailing slash.

    The environment variable ``HOSTWRIGHT_LAB_SEED_URL`` overrides the default URL.
    """
    file = lab.bmc / "netboot" / f"{host}.json"
    if file.exists():
        url = str(json.loads(file.read_text())["seed"])
    else:
        pattern = os.environ.get("HOSTWRIGHT_LAB_SEED_URL", DEFAULT)
        url = pattern.format(bridge=lab.gateway.ip, host=host)
    return url if url.endswith("/") else url + "/"
