"""Which cards an open driver holds: a made-up PCI bus, and the real shell."""

from __future__ import annotations

from pathlib import Path

from hostwright.standard.roles.driver.states.nouveau import NOUVEAU
from tests.unit.support.forks import forks
from tests.unit.support.shell import ask

CARDS = {
    "0000:01:00.0": ("0x10de", "nouveau"),
    "0000:02:00.0": ("0x10de", ""),
    "0000:03:00.0": ("0x10de", "nvidia"),
    "0000:04:00.0": ("0x8086", "i915"),
    "0000:05:00.0": ("0x10de", "nova_core"),
    "0000:06:00.0": ("0x10de", "nvidia"),
}


def bus(folder: Path, cards: dict[str, tuple[str, str]]) -> str:
    """The probe of a host with these cards, each with its vendor and its driver."""
    for slot, (vendor, driver) in cards.items():
        device = folder / "bus/pci/devices" / slot
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        if driver:
            (folder / "bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
            (device / "driver").symlink_to(f"../../../../bus/pci/drivers/{driver}")
    return NOUVEAU.script.replace("/sys/", f"{folder}/")


def test_cards_of_open_drivers_are_named_and_no_others(tmp_path: Path) -> None:
    assert ask(bus(tmp_path, CARDS)) == (0, "0000:01:00.0 nouveau\n0000:05:00.0 nova_core\n")


def test_a_host_without_cards_or_with_free_ones_has_none(tmp_path: Path) -> None:
    for name, cards in {"none": {}, "free": {"0000:02:00.0": ("0x10de", "")}}.items():
        assert ask(bus(tmp_path / name, cards)) == (0, "")


def test_eight_cards_cost_no_process(tmp_path: Path) -> None:
    assert forks(bus(tmp_path, {f"0000:0{slot}:00.0": ("0x10de", "nvidia") for slot in range(8)})) == 0
