"""Xids in the kernel log: Xids that fail a host, past Xids, and Xids of programs."""

from __future__ import annotations

from tests.lab.audit.made_up_case import log, made_up, together, xid
from tests.lab.audit.made_up_smi import two_cards

#: R470's messages about a card with an uncorrectable memory error, in order
DOUBLE_BIT = (
    xid(48, 3, "pid='<unknown>', name=<unknown>, DBE (double bit error) ECC Error"),
    xid(63, 3, "pid='<unknown>', name=<unknown>, Row Remapper: New row marked for remapping, reset gpu to activate."),
    xid(45, 3, "pid=4711, Ch 00000008"),
)
WORDS = "pid=4711, GPU has fallen off the bus."

XIDS = (
    made_up("Xid 62, the controller halted", log(xid(62, 5)), "xid-fatal"),
    made_up("Xid 119 in rsyslog's file", log(xid(119, 5, "pid=4711, Timeout"), journal=False), "xid-fatal"),
    made_up("Xid 74 of the second card, again after a reboot",
            together(two_cards(), log(xid(74, 40, bus="0000:41:00"), xid(74, 2, bus="0000:41:00"))), "xid-fatal"),
    made_up("Xid 48 with what follows from it", log(*DOUBLE_BIT), "xid-fatal"),
    made_up("the same before the last boot", log(*DOUBLE_BIT, boot_h=2), "xid-past"),
    made_up("Xid 31 of a program, hours before a fatal one", log(xid(31, 6), xid(62, 2)), "xid-fatal xid-application"),
    made_up("Xid 63 an hour ago", log(xid(63, 1)), "xid-memory-retired"),
    made_up("Xid 95 of a MIG instance",
            log((2, "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 95, pid=4711, Uncontained: LTC TAG")), "xid-fatal"),
    made_up("Xid 63 five hours ago", log(xid(63, 5)), "xid-memory-retired"),
    made_up("Xid 62 before the last boot", log(xid(62, 40)), "xid-past"),
    made_up("Xid 79 of a card that came back with the reboot", log(xid(79, 40, WORDS)), "xid-past"),
    made_up("Xid 79 of a card that answers again", log(xid(79, 5, WORDS)), "xid-past"),
    made_up("Xids 31 and 43 of a program", log(xid(31, 50, "Ch 00000010, MMU Fault"), xid(43, 50)), "xid-application"),
    made_up("Xid 94, contained to its program", log(xid(94, 4, "pid=4711, Contained: SM")), "xid-application"),
    made_up("the module asks for a reset, without an Xid",
            log((2, "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED]")),
            "gpu-reset-logged"),
    made_up("an Xid that nobody has described", log(xid(999, 4)), "xid-application"),
)  # fmt: skip
