"""Xids: what NVIDIA's driver reports in the kernel log when something goes wrong on a GPU. Pure.

What each number means stands in ``hostwright.standard.roles.driver.xids.catalog``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from hostwright.audit.hardware.gpu import GpuEvent
from hostwright.standard.roles.driver.xids.catalog import meaning_of
from hostwright.standard.roles.driver.xids.kernellog import KernelLine

TEXT_CHARACTERS = 200  #: of the rest of an Xid's line

#: ``NVRM: Xid (PCI:0000:3b:00): 79, pid=1, …``; drivers before 2013 wrote ``(0000:3b:00)`` or ``(3b:00)``, those since
#: Ampere name the MIG instance too. It must begin the line: other lines of the kernel's quote what programs say.
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{4,20})(?: [^()]{0,40})?\): (\d{1,3})(?:,\s*(.*))?", re.DOTALL)
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-7])?")
#: what the module says first when it is loaded; releases before 384 begin with the second
_LOADING = ("Nvlink Core is being initialized", "NVRM: loading NVIDIA UNIX")


def event(number: int, bus: str, at: str, text: str, count: int = 1) -> GpuEvent:
    """One Xid in the kernel log, with what it means and what NVIDIA says is to be done."""
    xid = meaning_of(number)
    return GpuEvent(number, bus, at, text, count, xid.meaning, xid.action.value)


def xid_events(lines: Iterable[KernelLine]) -> tuple[GpuEvent, ...]:
    """The Xids in these lines, one for each card and number, in the order in which they were first met."""
    events: dict[tuple[str, int], GpuEvent] = {}
    for line in lines:
        match = _XID.fullmatch(line.text)
        bus = slot(match[1]) if match else ""
        if match is None or not bus:
            continue
        number, text = int(match[2]), (match[3] or "").strip()[:TEXT_CHARACTERS]
        at = line.at.astimezone(UTC).isoformat(timespec="seconds") if line.at else ""
        before = events.get((bus, number), event(number, bus, "", "", 0))
        last = replace(before, at=at, text=text) if at >= before.at else before
        events[bus, number] = replace(last, count=before.count + 1)
    return tuple(events.values())


def slot(address: str) -> str:
    """A PCI address in any of NVIDIA's notations as ``0000:3b:00``; empty for what is none.

    >>> slot("00000000:3B:00.0")
    '0000:3b:00'
    """
    match = _ADDRESS.fullmatch(address.lower())
    return f"{int(match[1] or '0', 16):04x}:{match[2]}:{match[3]}" if match else ""


def loaded_at(lines: Iterable[KernelLine]) -> datetime | None:
    """When the module was last loaded, as far as these lines tell.

    Power cycle, reboot and reload all pass through here, so an Xid from before has had its cure.
    """
    times = [[line.at for line in lines if line.at and mark in line.text] for mark in _LOADING]
    return max(times[0] or times[1], default=None)
