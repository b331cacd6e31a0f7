"""The driver's own recovery action for a GPU, from Xid 154 or nvidia-smi's "GPU Recovery Action".

The numbers are those of ``nvmlDeviceGpuRecoveryAction_t``. A known number takes precedence over the words, which differ
between drivers.
"""

from __future__ import annotations

from enum import Enum

from hostwright.roles import Pattern


class Recovery(Enum):
    """Recovery action for a GPU that the driver requests, with a short text as value."""

    NONE = "nothing"
    RESET = "GPU reset"
    REBOOT = "node reboot"
    DRAIN = "drain P2P"
    DRAIN_AND_RESET = "drain and reset"
    IMEX = "recover the IMEX domain"
    BUS_RESET = "bus reset"
    SYSTEM = "system reboot"


_BY_NUMBER = dict(enumerate((Recovery.NONE, Recovery.RESET, Recovery.REBOOT, Recovery.DRAIN, Recovery.DRAIN_AND_RESET)))
#: words that must all occur in the text of a recovery action, most specific first
_BY_WORDS: tuple[tuple[tuple[str, ...], Recovery], ...] = (
    (("imex",), Recovery.IMEX),
    (("system",), Recovery.SYSTEM),
    (("bus",), Recovery.BUS_RESET),
    (("drain", "reset"), Recovery.DRAIN_AND_RESET),
    (("drain",), Recovery.DRAIN),
    (("reboot",), Recovery.REBOOT),
    (("reset",), Recovery.RESET),
    (("flr",), Recovery.RESET),  # R610 prints "PF FLR" for a function-level reset
    (("none",), Recovery.NONE),
)
_CHANGED = Pattern(
    r"GPU recovery action changed from 0x[0-9A-Fa-f]{1,8} {1,4}\([^()]{0,60}\) {1,4}"
    r"to 0x([0-9A-Fa-f]{1,8}) {1,4}\(([^()]{0,60})\)"
)


def recovery_of_words(words: str) -> Recovery | None:
    """Return the recovery action that nvidia-smi prints as ``words``; ``None`` for unknown words.

    >>> recovery_of_words("Drain and Reset").value
    'drain and reset'
    """
    lower = words.lower()
    return next((action for all_of, action in _BY_WORDS if all(word in lower for word in all_of)), None)


def recovery_of_xid(text: str) -> Recovery | None:
    """Return the recovery action in ``text``, the message of Xid 154; ``None`` for any other text.

    >>> recovery_of_xid("GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)").value
    'node reboot'
    """
    match = _CHANGED.search(text)
    return (_BY_NUMBER.get(int(match[1], 16)) or recovery_of_words(match[2])) if match else None
