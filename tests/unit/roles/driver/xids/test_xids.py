"""Xids: every way in which drivers wrote them, and what NVIDIA's catalog says of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.hardware.gpu import GpuEvent
from hostwright.standard.roles.driver.xids.catalog import (
    AZURE_FAILS_A_NODE,
    CATALOG,
    UNKNOWN,
    Action,
    Concern,
    meaning_of,
)
from hostwright.standard.roles.driver.xids.events import TEXT_CHARACTERS, loaded_at, slot, xid_events
from hostwright.standard.roles.driver.xids.events import event as xid
from hostwright.standard.roles.driver.xids.kernellog import KernelLine

AT = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)


def event(text: str, at: datetime | None = AT) -> tuple[GpuEvent, ...]:
    return xid_events((KernelLine(at, text),))


@pytest.mark.parametrize(
    "text, number, rest",
    [
        (
            "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            79,
            "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        ),
        ("NVRM: Xid (0000:3b:00): 31, Ch 00000010, engmask 00000101", 31, "Ch 00000010, engmask 00000101"),
        ("NVRM: Xid (PCI:0000:3b:00.0): 48, pid=7, DBE", 48, "pid=7, DBE"),
        ("NVRM: Xid (PCI:0000:3B:00 GPU-I:05): 94, pid=7, Contained", 94, "pid=7, Contained"),
        ("NVRM: Xid (PCI:00000000:3b:00): 63,", 63, ""),
        ("NVRM: Xid (3b:00): 13, 0005 00000000", 13, "0005 00000000"),
        ("NVRM: Xid (PCI:0000:3b:00): 43", 43, ""),
    ],
)
def test_every_form_is_read(text: str, number: int, rest: str) -> None:
    assert event(text) == (xid(number, "0000:3b:00", "2026-11-21T11:00:00+00:00", rest),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVRM: Xid",
        "NVRM: Xid (PCI:0000:3b:00): x",
        "NVRM: Xid (PCI:nowhere): 79, lost",
        "NVRM: Xid (PCI:0000:3b:00): 4294967295, lost",
        "audit: comm=NVRM: Xid (PCI:0000:3b:00): 79, lost",
        "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    ],
)
def test_lines_that_are_no_xid_give_no_event(text: str) -> None:
    assert event(text) == ()


def test_xids_are_grouped_by_card_and_number_with_the_last_time() -> None:
    rows = [("3b", 31, 3), ("3b", 31, 1), ("3b", 13, 2), ("5e", 31, 0), ("3b", 31, 9)]
    found = xid_events(
        KernelLine(AT - timedelta(hours=hours), f"NVRM: Xid (PCI:0000:{bus}:00): {number}, {hours} h")
        for bus, number, hours in rows
    )
    assert found == (
        xid(31, "0000:3b:00", "2026-11-21T10:00:00+00:00", "1 h", 3),
        xid(13, "0000:3b:00", "2026-11-21T09:00:00+00:00", "2 h", 1),
        xid(31, "0000:5e:00", "2026-11-21T11:00:00+00:00", "0 h", 1),
    )


def test_a_line_without_time_is_an_xid_without_time() -> None:
    assert event("NVRM: Xid (PCI:0000:3b:00): 62, x", None)[0].at == ""


def test_an_endless_line_is_cut() -> None:
    assert len(event("NVRM: Xid (PCI:0000:3b:00): 62, " + "x" * 100_000)[0].text) == TEXT_CHARACTERS


@given(st.lists(st.builds(KernelLine, st.none() | st.datetimes(timezones=st.just(UTC)), st.text())))
def test_no_line_upsets_it(lines: list[KernelLine]) -> None:
    assert xid_events(lines) == ()


@given(st.text(alphabet="0123456789abcdef:.PCI() GPU-NVRMXid,", max_size=60))
def test_nearly_an_xid_is_one_or_none(tail: str) -> None:
    for found in event(f"NVRM: Xid (PCI:{tail}"):
        assert 0 <= found.number <= 999
        assert slot(found.bus) == found.bus


@pytest.mark.parametrize("address", ["00000000:3B:00.0", "0000:3b:00.0", "0000:3b:00", "3b:00", "3B:00.0"])
def test_every_notation_of_an_address_is_one_slot(address: str) -> None:
    assert slot(address) == "0000:3b:00"


def test_a_domain_is_kept_and_nonsense_is_no_slot() -> None:
    assert slot("00010000:3b:00.0") == "10000:3b:00"
    assert [slot(text) for text in ("", "x", "3b", "0000:3b:00.9", "zz:00")] == [""] * 5


def test_the_last_loading_is_when_its_first_line_came() -> None:
    load = (
        KernelLine(AT, "nvidia-nvlink: Nvlink Core is being initialized, major device number 234"),
        KernelLine(AT + timedelta(seconds=5), "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.182.03"),
    )
    before = KernelLine(
        AT - timedelta(days=1), "nvidia-nvlink: Nvlink Core is being initialized, major device number 1"
    )
    assert loaded_at((before, *load)) == AT
    assert loaded_at(load[1:]) == AT + timedelta(seconds=5)
    assert loaded_at((KernelLine(AT, "NVRM: nothing"), KernelLine(None, load[0].text))) is None


@pytest.mark.parametrize(
    "number, action, concern",
    [
        (13, Action.RESTART_APP, Concern.PROGRAM),
        (31, Action.RESTART_APP, Concern.PROGRAM),
        (43, Action.IGNORE, Concern.PROGRAM),
        (45, Action.WORKFLOW_XID_45, Concern.PROGRAM),
        (48, Action.WORKFLOW_XID_48, Concern.NODE),
        (54, Action.CHECK_MECHANICALS, Concern.NODE),
        (62, Action.RESET_GPU, Concern.NODE),
        (63, Action.IGNORE, Concern.PROGRAM),
        (64, Action.RESET_GPU, Concern.NODE),
        (74, Action.WORKFLOW_NVLINK_ERR, Concern.NODE),
        (78, Action.UPDATE_SWFW, Concern.PROGRAM),
        (79, Action.RESTART_BM, Concern.NODE),
        (92, Action.IGNORE, Concern.PROGRAM),
        (94, Action.RESTART_APP, Concern.PROGRAM),
        (95, Action.RESET_GPU, Concern.NODE),
        (107, Action.IGNORE, Concern.NOBODY),
        (119, Action.RESET_GPU, Concern.NODE),
        (120, Action.RESET_GPU, Concern.NODE),
        (140, Action.RESET_GPU, Concern.NODE),
        (149, Action.WORKFLOW_NVLINK5_ERR, Concern.NODE),
        (154, Action.XID_154, Concern.NOBODY),
    ],
)
def test_the_catalog_says_what_nvidia_says(number: int, action: Action, concern: Concern) -> None:
    assert (CATALOG[number].action, CATALOG[number].concern) == (action, concern)


def test_every_fatal_xid_of_azure_is_known_and_fatal() -> None:
    program = {number for number in AZURE_FAILS_A_NODE if CATALOG[number].concern is Concern.PROGRAM}
    assert {CATALOG[number].action for number in program} == {Action.IGNORE, Action.RESTART_APP}


def test_every_action_is_used_and_its_sentence_is_its_own() -> None:
    assert {xid.action for xid in CATALOG.values()} == set(Action)
    assert len({action.value for action in Action}) == len(list(Action))
    assert all(xid.meaning and not xid.meaning.endswith(".") for xid in CATALOG.values())


def test_no_number_is_told_twice() -> None:
    from hostwright.standard.roles.driver.xids import catalog as xid_catalog

    numbers = [number for row in xid_catalog._ROWS for number in row[0]]
    assert len(numbers) == len(set(numbers)) == len(CATALOG)


def test_a_number_that_nobody_knows_does_not_fail_a_host() -> None:
    assert meaning_of(999) is UNKNOWN
    assert UNKNOWN.concern is Concern.PROGRAM
