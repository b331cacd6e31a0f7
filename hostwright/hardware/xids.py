"""Xids: what NVIDIA's driver reports in the kernel log when something goes wrong on a GPU, and what to do then."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class XidEvent:
    """One Xid in the kernel log. ``at`` is UTC, ISO 8601, or empty where the log does not say."""

    number: int
    bus: str  #: PCI address as ``0000:3b:00``
    at: str
    text: str  #: the rest of the line: untrusted
    count: int = 1  #: how often this number was met on this card in the time that was looked at; ``at`` is the last
