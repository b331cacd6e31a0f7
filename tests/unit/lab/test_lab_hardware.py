"""The kernel that the lab's made-up cards need: which driver has a card, as sysfs shows it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab import hardware
from lab.config import CHECKOUT
from lab.hardware import H100, T4, Hardware

KERNEL = CHECKOUT / "lab/vendor/src/hardware/kernel.sh"


@pytest.fixture
def devices(tmp_path: Path) -> Path:
    """The PCI bus of a host with two cards, of which R470 knows one, as its boot unit shows it."""
    hardware.install(tmp_path, Hardware(cards=(T4, H100)))
    (tmp_path / "sys/bus/pci").mkdir(parents=True)
    (tmp_path / hardware.HARDWARE / "pci").rename(tmp_path / "sys/bus/pci/devices")
    return tmp_path / "sys/bus/pci/devices"


def kernel(devices: Path, script: str) -> None:
    """Run functions of the kernel where the devices lie; device files are not made."""
    home, state = devices.parents[3] / hardware.HARDWARE, devices.parents[3] / "state"
    state.mkdir(exist_ok=True)
    for name, place in (("pci", devices), ("drivers", devices.parent / "drivers")):
        place.mkdir(exist_ok=True)
        if not (state / name).is_symlink():
            (state / name).symlink_to(place)
    places = f"LAB={home}; STATE={state}; device_file() {{ :; }}"
    subprocess.run(["sh", "-euc", f". {KERNEL}; {places}; {script}"], check=True)


def drivers(devices: Path) -> list[str]:
    """Of each device that has a driver, the driver's name, as lspci 3.9 and newer find it: the link must lead to it."""
    links = (device / "driver" for device in sorted(devices.iterdir()))
    return [link.resolve(strict=True).name for link in links if link.is_symlink()]


def test_a_cards_driver_is_a_directory_that_its_link_leads_to(devices: Path) -> None:
    assert drivers(devices) == []
    kernel(devices, "put nvidia 470.256.02")
    assert drivers(devices) == ["nvidia"]
    (card,) = (devices.parent / "drivers/nvidia").iterdir()
    assert card.resolve(strict=True) == devices / card.name
    kernel(devices, "take nvidia")
    assert (drivers(devices), list((devices.parent / "drivers").iterdir())) == ([], [])


def test_nouveau_lets_a_card_go_by_itself_alone(devices: Path) -> None:
    kernel(devices, "bind nouveau 0000:3b:00.0; bind nvidia 0000:3d:00.0")
    assert drivers(devices) == ["nouveau", "nvidia"]
    kernel(devices, "take nouveau")
    assert drivers(devices) == ["nvidia"]
