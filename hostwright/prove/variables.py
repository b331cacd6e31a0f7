"""What the inventory says of a host's proofs: how much worse than its baseline a figure may be."""

from __future__ import annotations

from hostwright.common.errors import InputError
from hostwright.inventory import Host
from hostwright.prove.judging import MAX_LOSS

VARIABLE = "hostwright_prove_max_loss"


def max_loss(host: Host) -> float:
    """The part of a baseline's figure that a host may lose without a finding; ``15%`` is 0.15.

    Raises ``InputError`` with file and line for anything but a percentage from 1 to 99.
    """
    value = host.get(VARIABLE)
    if value is None:
        return MAX_LOSS
    digits = value.removesuffix("%").strip() if isinstance(value, str) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 2 and int(digits) > 0 and "%" in value):
        raise InputError(
            f"{VARIABLE}: found {value!r:.40}, expected a percentage from 1% to 99%", host.vars[VARIABLE].origin.exact
        )
    return int(digits) / 100
