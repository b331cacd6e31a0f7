"""Parsers of single values in nvidia-smi's XML. A value that cannot be parsed counts as unknown.

For a missing value, nvidia-smi prints the name of NVML's error, with or without brackets: ``[N/A]``, ``GPU is lost``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

#: maximum number of characters of a text value. The longest values are command lines of processes.
MAX_CHARACTERS = 200
MAX_COUNT = 2**63 - 1  #: maximum value of a count. NVML reports 2**64 - 1 for a missing value.
MAX_SMALL_COUNT = 2**31 - 1  #: maximum value of NVML's 32-bit counters for pages, rows and replays

LOST, NEEDS_RESET, UNKNOWN_ERROR = "GPU is lost", "GPU requires reset", "Unknown Error"

#: lowercase texts that nvidia-smi prints for a missing value (partly from ``nvmlErrorString``)
NO_VALUES = frozenset({
    "", "n/a", "none", "unknown", "err!", "not supported", "not found", "not available", "no data", "timeout",
    "uninitialized", "invalid argument", "insufficient permissions", "insufficient size", "insufficient memory",
    "insufficient external power", "driver not loaded", "interrupt request issue", "function not found",
    "corrupted inforom", "the operating system has blocked the request", "in use by another client",
    "requested functionality has been deprecated", LOST.lower(), NEEDS_RESET.lower(), UNKNOWN_ERROR.lower(),
})  # fmt: skip

_TRUE = frozenset({"yes", "enabled", "active", "on", "true"})
_FALSE = frozenset({"no", "disabled", "not active", "off", "false"})
_COUNT = re.compile(r"([0-9]{1,20})(?: bank\(s\))?")
_NUMBER = re.compile(r"([-+]?[0-9]{1,12}(?:\.[0-9]{1,9})?) ?([A-Za-z]{1,4})")
_BYTES = {"B": 1, "kB": 2**10, "KB": 2**10, "KiB": 2**10, "MB": 2**20, "MiB": 2**20, "GB": 2**30, "GiB": 2**30}
_LANES = re.compile(r"x?([0-9]{1,3})x?")
_BUS = re.compile(r"([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])")


def line(element: Element | None, path: str = "") -> str:
    """Return the text of ``element``, or of the element at ``path`` below it, as one line.

    Longer texts than ``MAX_CHARACTERS`` are cut.
    """
    child = element.find(path) if element is not None and path else element
    text = child.text if child is not None else None
    return " ".join((text or "")[: 10 * MAX_CHARACTERS].split())[:MAX_CHARACTERS].strip()


def raw(element: Element | None, path: str = "") -> str:
    """Return the text of ``line`` without brackets around it."""
    words = line(element, path)
    return words[1:-1].strip() if words.startswith("[") and words.endswith("]") else words


def text_of(element: Element | None, path: str = "") -> str:
    """Return the text of ``raw``; empty for one of NVML's errors in place of a value."""
    words = raw(element, path)
    return "" if words.lower() in NO_VALUES else words


def yes(element: Element | None, path: str = "") -> bool | None:
    """Return true for ``Yes``, ``Enabled`` or ``Active``, false for the opposites, else ``None``."""
    words = raw(element, path).lower()
    return True if words in _TRUE else False if words in _FALSE else None


def count(element: Element | None, path: str = "", most: int = MAX_COUNT) -> int | None:
    """Return the element's whole number from 0 to ``most``, with or without ``bank(s)``; ``None`` for any other
    text.
    """
    match = _COUNT.fullmatch(raw(element, path))
    return int(match[1]) if match and int(match[1]) <= most else None


def size_bytes(element: Element | None, path: str = "") -> int | None:
    """Return the size in bytes in a text such as ``81559 MiB``; ``None`` above 64 TiB, or for any other text."""
    match = _NUMBER.fullmatch(raw(element, path))
    if not match or match[2] not in _BYTES:
        return None
    value = float(match[1]) * _BYTES[match[2]]
    return int(value) if 0 <= value <= 2**46 else None


def degrees(element: Element | None, path: str = "") -> int | None:
    """Return the number in a text such as ``40 C``; ``None`` outside -100 to 250, or for any other text."""
    value = _number(raw(element, path), "C")
    return int(value) if value is not None and value.is_integer() and -100 <= value <= 250 else None


def watts(element: Element | None, path: str = "") -> float | None:
    """Return the number in a text such as ``67.03 W``; ``None`` above 100 kW, or for any other text."""
    value = _number(raw(element, path), "W")
    return value if value is not None and 0 <= value <= 100_000 else None


def lanes(element: Element | None, path: str = "") -> int | None:
    """Return the PCIe lanes in a text such as ``16x``; ``None`` above 32 (PCI Express's maximum), or for any other
    text.
    """
    match = _LANES.fullmatch(raw(element, path))
    return int(match[1]) if match and 1 <= int(match[1]) <= 32 else None


def bus_address(*texts: str) -> str:
    """Return the first PCI address in ``texts`` in Linux's form; empty without an address.

    ``00000000:3B:00.0`` becomes ``0000:3b:00.0``.
    """
    for text in texts:
        match = _BUS.fullmatch(text)
        if match:
            return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}.{match[4]}".lower()
    return ""


def total(*parts: int | None) -> int | None:
    """Return the sum of the known counts; ``None`` if all are unknown."""
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _number(words: str, unit: str) -> float | None:
    match = _NUMBER.fullmatch(words)
    return float(match[1]) if match and match[2] == unit else None
