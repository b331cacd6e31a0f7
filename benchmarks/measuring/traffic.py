"""What went through a cable: the kernel's own counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes and packets, as the controller sees them."""

    sent_bytes: int
    received_bytes: int
    sent_packets: int
    received_packets: int

    def since(self, before: Traffic) -> dict[str, int]:
        """What has been added, by the names that samples have for it."""
        return {name: getattr(self, name) - getattr(before, name) for name in self.__slots__}


def through(cable: str) -> Traffic:
    """The counters of the machine's end of the controller's cable: what is received there, the controller sent."""
    counters = Path("/sys/class/net", cable, "statistics")

    def read(name: str) -> int:
        return int((counters / name).read_text())

    return Traffic(read("rx_bytes"), read("tx_bytes"), read("rx_packets"), read("tx_packets"))
