"""How many cards a host should have, and of which model, as its inventory says."""

from __future__ import annotations

from hostwright.common.errors import InputError
from hostwright.common.untrusted import whole
from hostwright.inventory import Host

GPUS = "hostwright_gpus"  #: the inventory's variable: how many GPUs a host has when all are there
MODEL = "hostwright_gpu_model"  #: the inventory's variable: the name of a host's GPUs, or a list of names


def read_expected_models(host: Host) -> tuple[str, ...]:
    """The models that a host's GPUs may have (``hostwright_gpu_model``); empty where the inventory does not say.

    Raises ``InputError`` with file and line for anything but a name or a list of names.
    """
    value = host.get(MODEL)
    if value is None:
        return ()
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(
            f"{MODEL}: found {value!r:.40}, expected the name of its GPUs as their driver tells it, "
            "such as A100-SXM4-80GB, or a list of names",
            host.vars[MODEL].origin.exact,
        )
    return tuple(" ".join(name.split()) for name in names)


def read_expected_gpus(host: Host) -> int | None:
    """How many GPUs the inventory says that a host has (``hostwright_gpus``); ``None`` where it does not say.

    Raises ``InputError`` with file and line for anything but a whole number from 0 to 64.
    """
    value = host.get(GPUS)
    if value is None:
        return None
    number = whole(value) if isinstance(value, str) else value  # what --var gives is text
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 64:
        raise InputError(
            f"{GPUS}: found {value!r:.40}, expected how many GPUs it has, such as 8", host.vars[GPUS].origin.exact
        )
    return number
