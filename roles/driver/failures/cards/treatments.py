"""What several failures of cards ask for, and who says so."""

from __future__ import annotations

#: an Xid that asks for a reboot, again after two of them, wants an inspection
GPUD = "leptonai/gpud, xid: the same after two reboots wants the hardware inspected"
RMA = "NVIDIA GPU memory error management, RMA criteria"
REBOOT = "the failure's own cure: reset the card or reboot"
CYCLE = "the failure's own cure: cycle the power, then have the card replaced"
