"""The lab's DHCP and PXE: which seed a host's installer is told to fetch when it boots from the network.

On real hardware this belongs to the site, and Hostwright writes nothing there; nor does it here: a test or a user does.
A host that boots an installer's image from virtual media also finds its seed here, instead of on the kernel command
line inside the image.
"""

from __future__ import annotations

import json
import os

from hostwright.common.errors import LabError
from lab.config import Lab, require_host_name
from lab.records import write_atomically

#: Where a host looks by default; ``{bridge}`` is the bridge's address, ``{host}`` the host's name.
DEFAULT = "http://{bridge}:8098/{host}/"


def set_seed(lab: Lab, host: str, url: str) -> None:
    """Have the installer of ``host`` fetch its seed below ``url``. Raises `LabError` if the lab has no BMCs."""
    require_host_name(host)
    if not lab.bmc.is_dir():
        raise LabError(f"lab {lab.name} has no BMCs; `python -m lab up --bmc` makes them")
    file = lab.bmc / "netboot" / f"{host}.json"
    file.parent.mkdir(exist_ok=True)
    write_atomically(file, json.dumps({"seed": url}))


def seed_url(lab: Lab, host: str) -> str:
    """Return the URL below which the installer of ``host`` finds its seed; it ends in a slash.

    ``HOSTWRIGHT_LAB_SEED_URL`` overrides the default for all hosts without a setting of their own.
    """
    file = lab.bmc / "netboot" / f"{host}.json"
    if file.exists():
        url = str(json.loads(file.read_text())["seed"])
    else:
        pattern = os.environ.get("HOSTWRIGHT_LAB_SEED_URL", DEFAULT)
        url = pattern.format(bridge=lab.gateway.ip, host=host)
    return url if url.endswith("/") else url + "/"
