"""Treatments that several failures of cards share, with their sources."""

from __future__ import annotations

#: an Xid that requires a reboot and returns after two of them requires an inspection
GPUD = "leptonai/gpud, xid: the same after two reboots wants the hardware inspected"
RMA = "NVIDIA GPU memory error management, RMA criteria"
REBOOT = "the failure's own cure: reset the card or reboot"
CYCLE = "the failure's own cure: cycle the power, then have the card replaced"

#: the driver's message about a card without power, before those that it leads to
NO_POWER = r"does not have the\s{1,9}necessary\s{1,9}power cables"
