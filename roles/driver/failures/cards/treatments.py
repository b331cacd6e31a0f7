"""Treatments and text patterns that several failure rules for cards share, with their sources."""

from __future__ import annotations

#: source of the rule that an Xid after two reboots requires an inspection of the hardware
GPUD = "leptonai/gpud, xid: the same after two reboots requires a hardware inspection"
RMA = "NVIDIA GPU memory error management, RMA criteria"
REBOOT = "the failure's own fix: reset the card or reboot"
CYCLE = "the failure's own fix: cycle the power, then have the card replaced"

#: pattern of a message about a card without power
NO_POWER = r"does not have the\s{1,9}necessary\s{1,9}power cables"
