"""What the inventory says of files: every slip with its place, and what holds without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.apply.delivery.sources.settings import FileSettings, Ports, read_file_settings
from hostwright.cli.shell.reference.variables import OWN
from hostwright.common.errors import InputErrors
from tests.unit.inventory.test_inventory_connection import host_of


def test_without_a_word_hosts_pull_and_serve_two_at_a_time(tmp_path: Path) -> None:
    settings = read_file_settings(host_of(tmp_path))
    assert settings == FileSettings("pull", "", Ports(), "", 2, 0, Ports())


def test_everything_can_be_said(tmp_path: Path) -> None:
    told = host_of(
        tmp_path,
        artifacts="push",
        hostwright_files_address="10.0.0.9",
        hostwright_files_port="8470-8479",
        hostwright_peer_group="rack 7",
        hostwright_peer_uploads=4,
        hostwright_peer_rate=12.5,
        hostwright_peer_port=8480,
    )
    expected = FileSettings("push", "10.0.0.9", Ports(8470, 8479), "rack 7", 4, 12_500_000, Ports(8480, 8480))
    assert read_file_settings(told) == expected


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("artifacts", "direct", FileSettings(way="direct")),
        ("hostwright_files_address", "FD00::0:9", FileSettings(address="fd00::9")),
        ("hostwright_files_port", "8470 - 8470", FileSettings(ports=Ports(8470, 8470))),
        ("hostwright_peer_group", 7, FileSettings(group="7")),
        ("hostwright_peer_uploads", "0", FileSettings(uploads=0)),  # as --var gives it
        ("hostwright_peer_uploads", 16, FileSettings(uploads=16)),
        ("hostwright_peer_rate", "100", FileSettings(rate=100_000_000)),
    ],
)
def test_a_value_is_read_as_it_is_meant(tmp_path: Path, name: str, value: object, meant: FileSettings) -> None:
    assert read_file_settings(host_of(tmp_path, **{name: value})) == meant


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("artifacts", value) for value in ("Pull", "", True, ["pull"], "ssh")],
        *[("hostwright_files_address", value) for value in ("gpu00", "10.0.0.9:80", "", 10, "fe80::1", "::", True)],
        *[("hostwright_files_port", value) for value in (80, 70000, "8479-8470", "any", -1, True, 8470.5, "8470-")],
        *[("hostwright_peer_group", value) for value in ("", "  ", True, ["rack"])],
        *[("hostwright_peer_uploads", value) for value in (-1, 17, "two", True, 1.5, "٣")],
        *[("hostwright_peer_rate", value) for value in (0, -5, "fast", True, 1e9, "1e999", "nan")],
        *[("hostwright_peer_port", value) for value in (0, "8480,8481")],
    ],
)  # fmt: skip
def test_a_slip_is_named_with_its_place(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(InputErrors, match=rf"hosts\.yml:\d+:\d+: {name}: found .*, expected "):
        read_file_settings(host_of(tmp_path, **{name: value}))


def test_all_slips_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputErrors) as caught:
        read_file_settings(host_of(tmp_path, artifacts="ssh", hostwright_peer_rate="fast"))
    assert len(caught.value.errors) == 2


def test_each_is_documented() -> None:
    names = {name for group in OWN.values() for name in group}
    assert names >= {
        "artifacts", "hostwright_files_address", "hostwright_files_port", "hostwright_peer_group",
        "hostwright_peer_uploads", "hostwright_peer_rate", "hostwright_peer_port",
    }  # fmt: skip
