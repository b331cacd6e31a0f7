"""Treatments and patterns that several failures of cards share, with their sources."""

from __future__ import annotations

#: source of the rule that the hardware needs an inspection if an Xid that requires a reboot returns after two reboots
GPUD = "leptonai/gpud, xid: the same after two reboots requires a hardware inspection"
RMA = "NVIDIA GPU memory error management, RMA criteria"
REBOOT = "the failure's own fix: reset the card or reboot"
CYCLE = "the failure's own fix: cycle the power, then have the card replaced"

#: pattern of the driver's message about a card without power, which precedes other messages with the same cause
NO_POWER = r"does not have the\s{1,9}necessary\s{1,9}power cables"
