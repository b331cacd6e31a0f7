"""Tests of the changes on a host since its release record: the probe on a made-up host, and parsing its output."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from hostwright.audit.readings.changed import CHANGED, changed_since
from hostwright.plan.host.release import PATH
from hostwright.plan.model import Answer, Facts
from tests.unit.support.madeup import MadeUp, bare

LONG_AGO = 1_000_000_000  #: seconds since 1970, in 2001


@pytest.fixture
def host(tmp_path: Path) -> MadeUp:
    """A host with a record of 2001 and newer files and packages."""
    made = bare(tmp_path)
    made.place(PATH).write_text("{}")
    os.utime(made.place(PATH), (LONG_AGO, LONG_AGO))
    shutil.rmtree(made.place("/etc"))
    made.place("/etc/driverctl.d/pci-0000:3b:00.0").write_text("vfio-pci\n")
    made.place("/etc/udev/rules.d/89-vfio.rules").write_text("# of the package\n")
    made.place("/etc/rc0.d/K01udev").write_text("")
    made.place("/var/lib/dpkg/info/driverctl.list").write_text(f"{made.root}/etc/udev/rules.d/89-vfio.rules\n")
    made.place("/var/log/dpkg.log").write_text(
        "2000-01-01 00:00:00 install old:all <none> 1\n"
        "2026-11-28 21:00:00 install driverctl:all <none> 0.111-1\n"
        "2026-11-28 21:00:01 status installed driverctl:all 0.111-1\n"
        "2026-11-28 21:00:02 install gone:amd64 <none> 1\n"
        "2026-11-28 21:00:03 remove gone:amd64 1 <none>\n"
    )
    return made


def read(text: str) -> tuple[str, ...]:
    return changed_since(Facts({CHANGED: Answer(0, text)}))


def test_packages_and_files_that_are_newer_than_the_record_are_told(host: MadeUp):
    assert read(host.ask(CHANGED.script)) == (
        "package driverctl installed 0.111-1",
        "package gone removed",
        "/etc/driverctl.d/pci-0000:3b:00.0",
    )


def test_a_removal_or_upgrade_whose_script_failed_is_none(host: MadeUp):
    kept = "kept:amd64 2"
    host.place("/var/log/dpkg.log").write_text(
        f"2026-11-28 21:00:00 status installed {kept}\n"
        f"2026-11-28 21:00:00 remove {kept} <none>\n"
        f"2026-11-28 21:00:01 status half-configured {kept}\n"
        f"2026-11-28 21:00:02 status installed {kept}\n"
        f"2026-11-28 21:00:03 upgrade {kept} 3\n"
        f"2026-11-28 21:00:04 status half-configured {kept}\n"
        f"2026-11-28 21:00:05 status installed {kept}\n"
        "2026-11-28 21:00:06 upgrade newer:all 1 2\n"
        "2026-11-28 21:00:07 status installed newer:all 2\n"
        "2026-11-28 21:00:08 upgrade again:all 1 1\n"
        "2026-11-28 21:00:09 status installed again:all 1\n"
    )
    assert [told for told in read(host.ask(CHANGED.script)) if told.startswith("package")] == [
        "package newer upgraded 2",
        "package again upgraded 1",
    ]


def test_a_host_without_a_record_says_nothing(host: MadeUp):
    host.place(PATH).unlink()
    assert host.ask(CHANGED.script) == ""


@pytest.mark.parametrize("text", ("file", "package\ta\tb\tc", "file\t/etc/mtab", "file\t/etc/a\tb", "\x00\n\t\t\t"))
def test_a_line_of_another_form_is_passed_over(text: str):
    assert read(text) == ()


def test_a_name_with_escape_codes_is_made_safe_to_print():
    assert "\x1b" not in read("file\t/etc/\x1b[31mred")[0]
