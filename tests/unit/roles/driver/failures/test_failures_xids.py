"""The rules of Xids, of lost cards and of nvidia-smi's exit status: one event is one finding."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.failures.cards.smi import SMI
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.xids.kernellog import KernelLine
from tests.unit.support.gpu_contexts import (
    A100,
    RULES,
    T4,
    all_seen,
    audit_context,
    cards,
    line,
    only,
    seen,
    unread,
    xid,
)

LOADING = "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"
TWO = cards(T4)


def test_a_fatal_xid_names_card_number_count_time_action_and_words() -> None:
    told = only(audit_context(*TWO, log=(xid(62, "3c", 2), xid(62, "3c", 1))), "xid-fatal")
    assert told.startswith("Xid 62 on card 1 (0000:3c:00), 2 times, last at 2026-11-21T11:00:00+00:00: the card's")
    assert "; RESET_GPU: drain the host and reset the card" in told
    assert told.endswith("; pid=7, its words")


def test_without_nvidia_smi_an_xid_is_found_and_names_the_place() -> None:
    found = all_seen(audit_context(log=(xid(62),), smi=Answer(9, "")))
    assert list(found) == ["xid-fatal"]
    assert found["xid-fatal"][0].startswith("Xid 62 on 0000:3b:00, once")


@pytest.mark.parametrize("number", [13, 31, 43, 45, 94, 999])
def test_what_a_program_did_does_not_fail_the_host(number: int) -> None:
    assert only(audit_context(*TWO, log=(xid(number),)), "xid-application").startswith(f"Xid {number} on card 0")


@pytest.mark.parametrize("number", [48, 57, 58, 62, 64, 74, 81, 95, 119, 120, 140])
def test_what_fails_a_node_does(number: int) -> None:
    assert only(audit_context(*TWO, log=(xid(number, hours=30),)), "xid-fatal").startswith(f"Xid {number} on card 0")


def test_firmware_that_stopped_stands_beside_the_xids_that_follow() -> None:
    stopped = "NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out"
    found = all_seen(audit_context(*TWO, log=(line(stopped, 1.05), xid(109))))["xid-fatal"]
    assert [one.partition(" on ")[0] for one in found] == ["Xid 109", stopped]
    assert "(8, 109, 154) follow" in RULES["xid-fatal"].sentences(*found)[0]
    assert len(all_seen(audit_context(*TWO, log=(line(stopped, 9), xid(109))))["xid-fatal"]) == 1
    assert all_seen(audit_context(*TWO, log=(line(stopped),))) == {}


@pytest.mark.parametrize("number", [68, 69, 80, 92])
def test_what_nvidia_asks_no_repair_for_fails_no_host(number: int) -> None:
    assert only(audit_context(*TWO, log=(xid(number, hours=1),)), "xid-application")


def test_retired_memory_waits_for_a_reset_and_is_over_with_it() -> None:
    assert only(audit_context(*TWO, log=(xid(63, hours=5),)), "xid-memory-retired").startswith("Xid 63 on card 0")
    assert only(audit_context(*TWO, log=(xid(63, hours=5), line(LOADING, 4))), "xid-past").startswith("Xid 63")


#: an uncorrectable memory error, in the card's words
DOUBLE_BIT = (xid(48, hours=3), xid(63, hours=3), xid(45, hours=2.9))


def test_consequences_of_a_fatal_xid_are_no_findings() -> None:
    found = all_seen(audit_context(*TWO, log=DOUBLE_BIT))
    assert list(found) == ["xid-fatal"]
    assert [line[:6] for line in found["xid-fatal"]] == ["Xid 48", "Xid 63", "Xid 45"]
    found = all_seen(audit_context(*TWO, log=(*DOUBLE_BIT, line(LOADING, 2))))
    assert list(found) == ["xid-past"]
    assert [line[:6] for line in found["xid-past"]] == ["Xid 48", "Xid 63", "Xid 45"]


@pytest.mark.parametrize(
    "other", [xid(31, hours=3), xid(45, "3c", 3), xid(45, hours=2), xid(45, hours=4), replace(xid(45), at=None)]
)
def test_what_a_program_did_elsewhere_or_another_time_is(other: KernelLine) -> None:
    assert set(all_seen(audit_context(*TWO, log=(xid(48, hours=3), other)))) == {"xid-fatal", "xid-application"}


def test_test_messages_and_comments_are_nothing() -> None:
    assert all_seen(audit_context(*TWO, log=(xid(106), xid(107), xid(154)))) == {}


def test_xid_before_a_reboot_is_past_unless_it_returns() -> None:
    log = (xid(62, hours=5), line(LOADING, 4))
    assert only(audit_context(*TWO, log=log), "xid-past").startswith("Xid 62 on card 0 (0000:3b:00), once")
    again = only(audit_context(*TWO, log=(*log, xid(62, hours=3))), "xid-fatal")
    assert again.startswith("Xid 62 on card 0 (0000:3b:00), 2 times")


def test_an_xid_without_time_counts_as_of_now() -> None:
    log = (replace(xid(62), at=None), line(LOADING, 4))
    assert ", once: the card's" in only(audit_context(*TWO, log=log), "xid-fatal")


def test_xids_cannot_be_told_without_a_log() -> None:
    for name in ("xid-fatal", "xid-past", "xid-application"):
        assert unread(name, audit_context(*TWO, log=None))


#: what R470 writes when a card falls off, and what follows from it
FALL = (
    line("NVRM: GPU at PCI:0000:3c:00: GPU-6d1", 1),
    line("NVRM: Xid (PCI:0000:3c:00): 79, pid=1234, GPU has fallen off the bus.", 1),
    line("NVRM: GPU 0000:3c:00.0: GPU has fallen off the bus.", 1),
    xid(45, "3c"),
    xid(119, "3c"),
    xid(154, "3c"),
)
FELL = "card at 0000:3c:00: NVRM: Xid (PCI:0000:3c:00): 79, pid=1234, GPU has fallen off the bus."


@pytest.mark.parametrize(
    "smi, notices",
    [
        (Answer(15, "Unable to determine the device handle for GPU 0000:3C:00.0: GPU is lost.\n"), ()),
        (Answer(255, "Unable to determine the device handle for GPU 0000:3C:00.0: Unknown Error\n"), ()),
        (Answer(124, ""), ()),
        (None, ()),
        (None, ("nvidia-smi ended with status 15",)),
    ],
)
def test_a_lost_card_is_one_finding_however_many_say_so(smi: Answer | None, notices: tuple[str, ...]) -> None:
    assert only(audit_context(TWO[0], log=FALL, smi=smi, notices=notices, on_bus=2), "gpu-lost") == FELL


def test_a_lost_card_that_is_still_described_is_one_finding() -> None:
    gone = replace(TWO[1], fault="GPU is lost")
    assert only(audit_context(TWO[0], gone, log=FALL), "gpu-lost") == FELL
    assert (
        only(audit_context(TWO[0], gone, log=None), "gpu-lost") == "card at 0000:3c:00: nvidia-smi: card 1: GPU is lost"
    )


def test_without_a_log_nvidia_smi_is_enough() -> None:
    handle = Answer(15, "Unable to determine the device handle for GPU 0000:3C:00.0: GPU is lost.  Reboot\n")
    assert seen("gpu-lost", audit_context(log=None, smi=handle))[0].startswith("card at 0000:3c:00: nvidia-smi: Unable")
    assert seen("gpu-lost", audit_context(log=None, smi=Answer(15, ""))) == ["nvidia-smi: ended with status 15"]


def test_a_card_that_answers_again_is_the_past() -> None:
    found = all_seen(audit_context(*TWO, log=FALL))
    assert "gpu-lost" not in found
    assert [one[:31] for one in found["xid-past"]] == ["Xid 79 on card 1 (0000:3c:00), "]


def test_a_card_that_came_back_with_the_reboot_is_the_past() -> None:
    found = all_seen(audit_context(log=(*FALL[:3], line(LOADING, 0.5)), smi=Answer(9, "")))
    assert list(found) == ["xid-past"]


def test_a_card_that_is_dead_when_the_module_is_loaded_is_lost() -> None:
    log = (
        line(LOADING, 1),
        line("NVRM: The NVIDIA GPU 0000:3c:00.0", 1),
        line("NVRM: (PCI ID: 10de:1eb8) installed in this system has", 1),
        line("NVRM: fallen off the bus and is not responding to commands.", 1),
    )
    assert only(audit_context(TWO[0], log=log, on_bus=2), "gpu-lost").startswith(
        "card at 0000:3c:00: NVRM: fallen off the bus"
    )


def test_a_process_of_that_name_is_no_lost_card() -> None:
    named = Answer(0, "<process_name>GPU is lost, Xid 79, infoROM is corrupted</process_name>")
    assert all_seen(audit_context(*TWO, answers={NVIDIA_SMI: named})) == {}


def test_whether_a_card_is_lost_cannot_be_told_when_nothing_answers() -> None:
    assert unread("gpu-lost", audit_context(log=None, smi=Answer(127, "")))
    assert unread("gpu-lost", replace(audit_context(log=None, smi=Answer(1, "")), facts=Facts({})))
    assert not unread("gpu-lost", audit_context(smi=Answer(127, "")))


@pytest.mark.parametrize(
    "status, name",
    [
        (8, "power-cable"),
        (10, "gpu-interrupts"),
        (14, "inforom-corrupted"),
        (124, "nvidia-smi-silent"),
        (137, "nvidia-smi-silent"),
    ],
)
def test_an_exit_status_is_its_finding_with_a_report_or_without(status: int, name: str) -> None:
    told = only(audit_context(smi=Answer(status, "first\nits last words\n")), name)
    assert told == f"nvidia-smi ended with status {status}: its last words"
    ended = f"nvidia-smi ended with status {status}"
    assert only(audit_context(*TWO, notices=(ended,)), name) == ended


def test_status_is_read_where_the_probe_writes_it() -> None:
    report = (
        '<?xml version="1.0" ?>\n<nvidia_smi_log>\n<driver_version>470.182.03</driver_version>\n</nvidia_smi_log>\n'
    )
    host = audit_context(smi=Answer(0, f"{report}nvidia-smi ended with status 10\n"), on_bus=0, roles=())
    assert only(host, "gpu-interrupts") == "nvidia-smi ended with status 10"
    assert all_seen(audit_context(smi=Answer(0, report), on_bus=0, roles=())) == {}


# of a driver that cannot be read; else they are the rule nvidia-smi-failed's (test_failures_driver)
@pytest.mark.parametrize("status", [2, 6, 9, 12, 127, 139])
def test_other_statuses_belong_to_the_driver(status: int) -> None:
    assert all_seen(audit_context(smi=Answer(status, "words"))) == {}


def test_a_corrupted_inforom_is_told_in_nvidia_smis_words() -> None:
    notice = "WARNING: infoROM is corrupted at gpu 0000:3C:00.0"
    assert only(audit_context(*TWO, notices=(notice, "nvidia-smi ended with status 14")), "inforom-corrupted") == notice
    assert only(audit_context(smi=Answer(14, f"<cut\n{notice}\n")), "inforom-corrupted") == notice


def test_a_power_cable_is_one_finding_of_its_own() -> None:
    log: tuple[KernelLine, ...] = (xid(54),)
    assert only(audit_context(*TWO, log=log), "power-cable").startswith("Xid 54 on card 0 (0000:3b:00)")
    assert only(audit_context(*TWO, log=(*log, line(LOADING, 0.5))), "xid-past")
    assert only(audit_context(smi=Answer(8, ""), log=None), "power-cable") == "nvidia-smi ended with status 8"


def test_no_status_is_no_finding() -> None:
    for rule in SMI:
        assert unread(rule.name, replace(audit_context(A100, smi=Answer(1, "")), facts=Facts({})))


RESET = (
    "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from"
    " status @ kernel_channel.c:2827"
)


def test_a_reset_that_only_the_log_asks_for_is_told() -> None:
    """kubernetes-sigs/dra-driver-nvidia-gpu#982, scitix/sichek#51"""
    assert only(audit_context(*TWO, log=(line(RESET, 2), line(RESET))), "gpu-reset-logged") == RESET
    assert only(audit_context(smi=Answer(9, ""), log=(line(RESET),)), "gpu-reset-logged") == RESET
    assert all_seen(audit_context(*TWO, log=(line(RESET, 3), line(LOADING, 2)))) == {}
    assert all_seen(audit_context(*TWO, log=(line(RESET, 30),))) == {}
    assert list(all_seen(audit_context(*TWO, log=(line(RESET), xid(62))))) == ["xid-fatal"]
    asks = replace(T4, recovery="GPU Reset")
    assert list(all_seen(audit_context(asks, log=(line(RESET),)))) == ["gpu-needs-reset"]
    assert unread("gpu-reset-logged", audit_context(*TWO, log=None))


def changed(to: str, bus: str = "3b", hours: float = 1.0, before: str = "0x0 (None)") -> KernelLine:
    """The driver asks for another recovery action."""
    return line(f"NVRM: Xid (PCI:0000:{bus}:00): 154, GPU recovery action changed from {before} to {to}", hours)


@pytest.mark.parametrize(
    ("to", "asked"),
    [
        ("0x1 (GPU Reset Required)", "GPU reset"),
        ("0x1 (PF FLR)", "GPU reset"),  # of R610
        ("0x2 (Node Reboot Required)", "node reboot"),
        ("0x2 (OS Reboot)", "node reboot"),
        ("0x3 (Drain P2P)", "drain P2P"),
        ("0x4 (Drain and Reset)", "drain and reset"),
        ("0x7 (System Reboot)", "system reboot"),
        ("0x6 (Bus Reset)", "bus reset"),
        ("0x5 (Recover IMEX Domain)", "recover the IMEX domain"),
    ],
)
def test_what_the_driver_asks_for_stands_beside_the_xid(to: str, asked: str) -> None:
    told = only(audit_context(*TWO, log=(xid(119), changed(to, hours=0.9))), "xid-fatal")
    assert told.startswith(f"Xid 119 (154: {asked}) on card 0 (0000:3b:00), once")


def test_a_card_that_asks_for_a_recovery_is_a_finding_without_any_other_xid() -> None:
    told = only(audit_context(*TWO, log=(changed("0x2 (Node Reboot Required)"),)), "xid-fatal")
    assert told.startswith("Xid 154 (154: node reboot) on card 0 (0000:3b:00), once")
    found = all_seen(audit_context(*TWO, log=(xid(13), changed("0x1 (PF FLR)", hours=0.9))))
    assert set(found) == {"xid-fatal", "xid-application"}


def test_a_recovery_that_was_taken_back_ends_what_came_before_it() -> None:
    log = (xid(119, hours=3), changed("0x1 (GPU Reset Required)", hours=2.9))
    back = changed("0x0 (None)", hours=2, before="0x1 (GPU Reset Required)")
    assert list(all_seen(audit_context(*TWO, log=log))) == ["xid-fatal"]
    assert list(all_seen(audit_context(*TWO, log=(*log, back)))) == ["xid-past"]
    assert "xid-fatal" in all_seen(audit_context(*TWO, log=(*log, back, xid(62, hours=1))))
    assert all_seen(audit_context(*TWO, log=(changed("0x2 (OS Reboot)", hours=3), line(LOADING, 2)))) == {}


def test_a_recovery_of_another_card_says_nothing() -> None:
    told = only(audit_context(*TWO, log=(xid(119), changed("0x0 (None)", "3c", 0.5))), "xid-fatal")
    assert told.startswith("Xid 119 on card 0")


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("145, RLW_CTRL Nonfatal XC0 i0 Link 00 (0x00000003 0x80000000 0x00000000 0x00000000)", "xid-application"),
        ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x00000001 0x00000000)", "xid-application"),
        ("149, NETIR_LINK_DOWN Fatal XC0 i0 Link 10 (0x004a2cc6 0x00000000)", "xid-fatal"),
        ("62, PMU Nonfatal XC0", "xid-fatal"),  # only NVLink 5 says so
    ],
)
def test_an_error_of_an_nvlink_5_that_is_not_fatal_fails_no_host(words: str, rule: str) -> None:
    assert only(audit_context(*TWO, log=(line(f"NVRM: Xid (PCI:0000:3b:00): {words}"),)), rule)


def test_a_fatal_error_is_not_forgotten_over_a_milder_one() -> None:
    fatal = line("NVRM: Xid (PCI:0000:3b:00): 145, RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040)", 2)
    mild = line("NVRM: Xid (PCI:0000:3b:00): 145, RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001)", 1)
    assert "2 times" in only(audit_context(*TWO, log=(fatal, mild)), "xid-fatal")
