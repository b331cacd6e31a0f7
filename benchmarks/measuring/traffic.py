"""Traffic on a cable, from the kernel's counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes and packets, from the controller's point of view."""

    sent_bytes: int
    received_bytes: int
    sent_packets: int
    received_packets: int

    def since(self, before: Traffic) -> dict[str, int]:
        """Increase since ``before``, by field names of samples."""
        return {name: getattr(self, name) - getattr(before, name) for name in self.__slots__}


def through(cable: str) -> Traffic:
    """Counters of the machine's interface of the cable: the controller sent what is received there."""
    counters = Path("/sys/class/net", cable, "statistics")

    def read(name: str) -> int:
        return int((counters / name).read_text())

    return Traffic(read("rx_bytes"), read("tx_bytes"), read("rx_packets"), read("tx_packets"))
