"""Tests that the history keeps hardware for a month, including hardware that has disappeared since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hostwright.audit.fleetaudit import Reading
from hostwright.audit.hardware.gpu import GpuLink
from hostwright.audit.hardware.known import NOTHING_KNOWN, KnownHardware, known_card
from hostwright.audit.history.items import card_of
from tests.unit.audit.history.test_history import CARD_1, audit, filled, host, on, told, unread

CARD_2 = replace(CARD_1, index=1, bus="0000:3d:00.0", uuid="GPU-2", serial="133")
LINKED = replace(CARD_1, memory_bytes=40960 << 20, pcie_width_max=16, links=(GpuLink(0, True), GpuLink(1, True)))


def count(number: int) -> Reading:
    return Reading("gpu", "count", str(number))


TWO = host(readings=[count(2), Reading("base", "memory", "63 GiB")], gpus=(CARD_1, CARD_2))
ONE = host(readings=[count(1), Reading("base", "memory", "31 GiB")], gpus=(CARD_1,))


def test_a_card_that_is_gone_is_remembered_with_slot_serial_and_uuid(tmp_path: Path):
    history = filled(tmp_path, audit(0, TWO), audit(1, ONE), audit(2, ONE))
    known = history.hardware("inventory", on(3))["gpu01"]
    assert (known.most_gpus, known.memory_gib) == (2, 63)
    assert [card.name for card in known.missing([CARD_1])] == ["0000:3d:00.0: Tesla T4, serial 133, GPU-2"]
    assert known.missing([CARD_1, CARD_2]) == ()


def test_after_a_month_the_host_is_as_it_is(tmp_path: Path):
    history = filled(tmp_path, audit(0, TWO), audit(1, ONE))
    assert history.hardware("inventory", on(30))["gpu01"].most_gpus == 2
    known = history.hardware("inventory", on(40))["gpu01"]
    assert (known.most_gpus, known.memory_gib, known.missing([CARD_1])) == (1, 31, ())


def test_what_could_not_be_read_is_not_gone(tmp_path: Path):
    history = filled(tmp_path, audit(0, TWO), audit(1, unread()))
    assert history.hardware("inventory", on(40))["gpu01"].most_gpus == 2
    assert history.hardware("another", on(1)) == {}


def test_a_card_in_the_slot_of_another_replaces_it(tmp_path: Path):
    history = filled(tmp_path, audit(0, TWO))
    known = history.hardware("inventory", on(1))["gpu01"]
    assert known.missing([CARD_1, replace(CARD_2, uuid="GPU-9", serial="999")]) == ()
    moved = replace(CARD_2, bus="0000:41:00.0")
    assert known.missing([CARD_1, moved]) == ()


def test_what_a_card_has_less_of_is_told():
    known = KnownHardware(cards=(known_card(LINKED),))
    now = replace(LINKED, memory_bytes=20480 << 20, pcie_width_max=8, links=(GpuLink(0, True), GpuLink(1, False)))
    assert list(known.less(now)) == [
        "MiB of memory: 20480, 40960 before",
        "active NVLinks: 1, 2 before",
        "PCIe lanes: 8, 16 before",
    ]
    assert list(known.less(LINKED)) == list(NOTHING_KNOWN.less(now)) == []
    assert list(known.less(replace(now, uuid="GPU-9"))) == []  # another card
    unknown = replace(LINKED, memory_bytes=None, pcie_width_max=None, links=())
    assert list(known.less(unknown)) == []


def test_memory_counts_as_less_from_one_module_on():
    known = KnownHardware(memory_gib=512)
    assert known.less_memory(503 << 30) == ""
    assert known.less_memory(496 << 30) == "496 GiB, 512 GiB before"


def test_cards_of_an_earlier_version_are_read_and_are_no_change(tmp_path: Path):
    old = card_of("0000:3b:00.0", '["Tesla T4", "132", "GPU-1", "90.04"]')
    assert (old.uuid, old.memory) == ("GPU-1", "")
    assert not old.differs(known_card(LINKED))
    history = filled(tmp_path, audit(0, host(gpus=(CARD_1,))), audit(1, host(gpus=(LINKED,))))
    assert told(history) == ["0 status: desired"]


def test_a_card_with_fewer_links_is_a_change(tmp_path: Path):
    fewer = replace(LINKED, links=LINKED.links[:1])
    history = filled(tmp_path, audit(0, host(gpus=(LINKED,))), audit(1, host(gpus=(fewer,))))
    assert "2 NVLinks" in told(history)[1]
    assert "→" in told(history)[1]
