"""Xids (NVIDIA's error reports about a GPU), parsed from lines of the kernel log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from hostwright.roles import GpuEvent, Pattern
from hostwright.standard.roles.driver.xids.catalog import NVLINK5, meaning_of
from hostwright.standard.roles.driver.xids.kernellog import KernelLine

TEXT_CHARACTERS = 200  #: maximum number of characters that are read after an Xid's number

#: pattern of an Xid's line: ``NVRM: Xid (PCI:0000:3b:00): 79, pid=1, …``. It matches only at the start of a line,
#: because other kernel lines quote text of programs.
_XID = Pattern(r"(?s)NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{4,20})(?: [^()]{0,40})?\): ([0-9]{1,3})(?:,\s*(.*))?")
_NONFATAL = Pattern(r"[A-Z0-9_]{1,40} {1,4}Nonfatal\b")
_ADDRESS = Pattern(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?")
#: first messages of the driver's module after loading. Releases before 384 print only the second message.
_LOADING = ("Nvlink Core is being initialized", "NVRM: loading NVIDIA UNIX")


def event(number: int, bus: str, at: str, text: str, count: int = 1) -> GpuEvent:
    """Return the event for the Xid ``number``, with its meaning and the action that NVIDIA recommends."""
    xid = meaning_of(number)
    return GpuEvent(number, bus, at, text, count, xid.meaning, xid.action.value)


def xid_events(lines: Iterable[KernelLine]) -> tuple[GpuEvent, ...]:
    """Return one event for each GPU and Xid number in ``lines``, in the order of first occurrence."""
    events: dict[tuple[str, int], GpuEvent] = {}
    for line in lines:
        match = _XID.fullmatch(line.text)
        bus = slot(match[1]) if match else ""
        if match is None or not bus:
            continue
        number, text = int(match[2]), (match[3] or "").strip()[:TEXT_CHARACTERS]
        at = line.at.astimezone(UTC).isoformat(timespec="seconds") if line.at else ""
        before = events.get((bus, number), event(number, bus, "", "", 0))
        milder = bool(before.text) and is_nonfatal(number, text) and not is_nonfatal(number, before.text)
        last = replace(before, at=at, text=before.text if milder else text) if at >= before.at else before
        events[bus, number] = replace(last, count=before.count + 1)
    return tuple(events.values())


def is_nonfatal(number: int, text: str) -> bool:
    """Return whether the Xid ``number`` is an NVLink 5 error that ``text`` calls nonfatal.

    An example is ``RLW_REMAP Nonfatal XC0 i0 Link 00 (0x…)``.
    """
    return number in NVLINK5 and _NONFATAL.match(text) is not None


def slot(address: str) -> str:
    """Return the PCI address ``address``, in any of NVIDIA's notations, as ``0000:3b:00``; empty for any other text.

    >>> slot("00000000:3B:00.0")
    '0000:3b:00'
    """
    match = _ADDRESS.fullmatch(address.lower())
    return f"{int(match[1] or '0', 16):04x}:{match[2]}:{match[3]}" if match else ""


def loaded_at(lines: Iterable[KernelLine]) -> datetime | None:
    """Return the time of the last load of the driver's module in ``lines``; ``None`` without a load.

    Earlier Xids have had their remedy: a power cycle, a reboot or a reload of the module.
    """
    times = [[line.at for line in lines if line.at and mark in line.text] for mark in _LOADING]
    return max(times[0] or times[1], default=None)
