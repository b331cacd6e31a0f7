"""How many cards a host should have, as its inventory says."""

from __future__ import annotations

from hostwright.common.errors import InputError
from hostwright.inventory import Host

GPUS = "hostwright_gpus"  #: the inventory's variable: how many GPUs a host has when all are there


def read_expected_gpus(host: Host) -> int | None:
    """How many GPUs the inventory says that a host has (``hostwright_gpus``); ``None`` where it does not say.

    Raises ``InputError`` with file and line for anything but a whole number from 0 to 64.
    """
    number = host.get(GPUS)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 64:
        raise InputError(
            f"{GPUS}: found {number!r:.40}, expected how many GPUs it has, such as 8", host.vars[GPUS].origin.exact
        )
    return number
