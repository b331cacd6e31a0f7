"""The number and model of GPUs that the inventory sets for a host."""

from __future__ import annotations

from hostwright.common.errors import InputError
from hostwright.common.untrusted import whole
from hostwright.inventory import Host

GPUS = "hostwright_gpus"  #: name of the inventory variable with the number of GPUs of an intact host
MODEL = "hostwright_gpu_model"  #: name of the inventory variable with the model names of a host's GPUs


def read_expected_models(host: Host) -> tuple[str, ...]:
    """The allowed GPU models of a host (``hostwright_gpu_model``); empty without this variable.

    Raises ``InputError`` with file and line for a value that is not a name or a list of names.
    """
    value = host.get(MODEL)
    if value is None:
        return ()
    names = value if isinstance(value, list) else [value]
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(
            f"{MODEL}: found {value!r:.40}, expected the name of the host's GPUs as the driver reports it, "
            "such as A100-SXM4-80GB, or a list of names",
            host.vars[MODEL].origin.exact,
        )
    return tuple(" ".join(name.split()) for name in names)


def read_expected_gpus(host: Host) -> int | None:
    """The number of a host's GPUs (``hostwright_gpus``); ``None`` without this variable.

    Raises ``InputError`` with file and line for a value that is not an integer from 0 to 64.
    """
    value = host.get(GPUS)
    if value is None:
        return None
    number = whole(value) if isinstance(value, str) else value  # The option ``--var`` sets a string.
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 64:
        raise InputError(
            f"{GPUS}: found {value!r:.40}, expected a number of GPUs from 0 to 64", host.vars[GPUS].origin.exact
        )
    return number
