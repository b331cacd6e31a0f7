"""Parses durations as operators write them (``90``, ``15m``, ``1d12h``), and defines a clock that tests can replace."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

LONGEST_S = 10 * 365 * 86400.0  #: longest accepted duration in seconds: ten years

_UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
#: pattern of a duration with units, from the largest unit to the smallest
_COMPOUND = re.compile(r"\s*".join(f"(?:(?P<{unit}>[0-9]{{1,9}}){unit})?" for unit in _UNITS), re.ASCII)
_PLAIN = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Clock:
    """Time functions, which tests can replace. ``now_s`` is monotonic; ``time_of_day`` is only for display."""

    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    time_of_day: Callable[[], str] = lambda: time.strftime("%H:%M:%S")


def seconds(text: str | int | float) -> float:
    """Convert a duration to seconds: ``90``, ``90s``, ``15m``, ``2h``, ``3d``, ``2w``, ``1d12h``.

    Raises ``ValueError`` for other text, for zero or a negative duration, and for more than ten years.

    >>> seconds("1d12h")
    129600.0
    """
    value = _read(text)
    if not 0 < value <= LONGEST_S:
        raise ValueError(f"found {text!r:.60}, expected a duration such as 90 (seconds), 90s, 15m, 2h, 3d, 2w or 1d12h")
    return value


def _read(text: object) -> float:
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return float(text) if 0 < text <= LONGEST_S else 0.0
    if not isinstance(text, str):
        return 0.0
    plain = text.strip().lower()
    if _PLAIN.fullmatch(plain):
        return float(plain)
    match = _COMPOUND.fullmatch(plain)
    return float(sum(int(match[unit] or 0) * size for unit, size in _UNITS.items())) if match else 0.0
