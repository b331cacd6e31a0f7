"""Traffic on the controller's cable, from the kernel's counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes and packets sent and received by the controller."""

    sent_bytes: int
    received_bytes: int
    sent_packets: int
    received_packets: int

    def since(self, before: Traffic) -> dict[str, int]:
        """Name of a field of ``Sample`` → increase since ``before``."""
        return {name: getattr(self, name) - getattr(before, name) for name in self.__slots__}


def through(cable: str) -> Traffic:
    """Read the machine's end of a cable, which receives the bytes that the controller sends."""
    counters = Path("/sys/class/net", cable, "statistics")

    def read(name: str) -> int:
        return int((counters / name).read_text())

    return Traffic(read("rx_bytes"), read("tx_bytes"), read("rx_packets"), read("tx_packets"))
