"""Traffic on the controller's virtual network cable, from the kernel's counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Traffic:
    """Numbers of bytes and packets that the controller has sent and received."""

    sent_bytes: int
    received_bytes: int
    sent_packets: int
    received_packets: int

    def since(self, before: Traffic) -> dict[str, int]:
        """Return the increase of each counter since ``before``, by field name of ``Sample``."""
        return {name: getattr(self, name) - getattr(before, name) for name in self.__slots__}


def through(cable: str) -> Traffic:
    """Read the counters of this machine's end of the cable. This end receives the controller's bytes."""
    counters = Path("/sys/class/net", cable, "statistics")

    def read(name: str) -> int:
        return int((counters / name).read_text())

    return Traffic(read("rx_bytes"), read("tx_bytes"), read("rx_packets"), read("tx_packets"))
