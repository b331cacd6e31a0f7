"""Packages of another architecture share their names with the host's own: a driver's 32-bit libraries (Steam, Wine)
stand beside the 64-bit ones. ``apt-get purge NAME`` takes the host's own alone (NVIDIA/nvidia-docker#1001 and many
others end with "i386 packages left"). The real dpkg, with a database of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.resources.packages.debs_gone import Database, DebsGone
from hostwright.resources.packages.dpkg import DPKG, parse_dpkg
from hostwright.resources.packages.packages import Debs, DebsAbsent
from hostwright.standard.roles.driver.states.runfile import driver_packages
from tests.unit.support.facts import facts_for

PACKAGE = """\
Package: {name}
Status: {wanted} ok installed
Architecture: {architecture}
{multi}Version: {version}
Maintainer: N <n@n.example>
Description: d

"""


@pytest.fixture
def answer(tmp_path: Path) -> str:
    """What the probe prints of a host with both architectures."""
    if shutil.which("dpkg-query") is None:
        pytest.skip("this machine has no dpkg")
    native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()
    rows = (
        ("libnvidia-gl-470", native, "470.57.02-0", "hold"),
        ("libnvidia-gl-470", "i386", "470.57.02-1", "install"),
        ("libnvidia-decode-470", "i386", "470.57.02-0", "install"),
        ("nvidia-kernel-common", "all", "1.0", "install"),
        ("dpkg", native, "1.21", "install"),
    )
    (tmp_path / "status").write_text(
        "".join(
            PACKAGE.format(
                name=name,
                architecture=of,
                version=version,
                wanted=wanted,
                multi="" if of == "all" else "Multi-Arch: same\n",
            )
            for name, of, version, wanted in rows
        )
    )
    (tmp_path / "arch").write_text(f"{native}\ni386\n")
    (tmp_path / "info").mkdir()
    (tmp_path / "info/format").write_text("1\n")
    env = {**os.environ, "DPKG_ADMINDIR": str(tmp_path)}
    return subprocess.run(["/bin/sh"], input=DPKG.script, env=env, capture_output=True, text=True, check=True).stdout


def test_each_architecture_has_a_row_of_its_own(answer: str) -> None:
    table = parse_dpkg(answer)
    assert {name: (row.version, row.held) for name, row in table.items()} == {
        "libnvidia-gl-470": ("470.57.02-0", True),
        "libnvidia-gl-470:i386": ("470.57.02-1", False),
        "libnvidia-decode-470:i386": ("470.57.02-0", False),
        "nvidia-kernel-common": ("1.0", False),
        "dpkg": ("1.21", False),
    }
    told = {name: (row.architecture, row.source) for name, row in table.items()}
    assert told["libnvidia-gl-470:i386"] == ("i386", "libnvidia-gl-470")
    assert told["nvidia-kernel-common"] == ("all", "nvidia-kernel-common")


def test_a_row_names_the_source_package_and_one_of_an_older_record_none(answer: str) -> None:
    now = parse_dpkg(answer.replace("\tlibnvidia-gl-470\n", "\tnvidia-graphics\n"))["libnvidia-gl-470"]
    (before,) = parse_dpkg("libnvidia-gl-470\t470.57.02-0\thi \n").values()
    assert (now.source, before.source, before) == ("nvidia-graphics", "", now)


def test_packages_of_other_architectures_are_removed_by_their_whole_names(answer: str) -> None:
    others = DebsAbsent(("libnvidia-gl-[0-9]*", "libnvidia-decode-470"), "two drivers")
    change = others.plan(facts_for(others, {"Architecture}": answer}))
    assert isinstance(change, Change)
    names = "libnvidia-decode-470:i386 libnvidia-gl-470 libnvidia-gl-470:i386"
    assert change.steps[0].script.endswith(f" purge {names}")
    kept = DebsAbsent(("libnvidia-*",), "x", keep=("libnvidia-*-470",))
    assert kept.plan(facts_for(kept, {"Architecture}": answer})) is None


def test_a_drivers_32_bit_package_that_a_whole_name_names_is_a_drivers() -> None:
    rows = "libnvcuvid1:i386\t470.57.02-0\tii \nlibnvidia-container1:i386\t1.0\tii \nlibnvoptix1\t470.57.02-0\tii \n"
    assert driver_packages(Facts({DPKG: Answer(0, rows)})) == ("libnvcuvid1:i386", "libnvoptix1")


def test_the_hosts_own_package_counts_for_what_is_wanted(answer: str) -> None:
    wanted = Debs(("libnvidia-gl-470=470.57.02-0",), hold=True)
    facts = facts_for(wanted, {DPKG.script: answer})
    assert wanted.plan(facts) is None
    assert Debs(("libnvidia-decode-470",)).plan(facts) is not None


def test_what_a_package_of_another_architecture_needs_stays() -> None:
    """And no package of another architecture goes for the sake of ours."""
    now = "tool\t1\tii \ndata\t1\tii \nlibx\t1\tii \nlibx:i386\t1\tii \ntheirs:i386\t1\tii \n"
    depends = "tool\t, data, libx\t\t\ndata\t, \t\t\nlibx\t, \t\t\nlibx\t, \t\t\ntheirs\t, data, libx\t\t\n"
    gone = DebsGone(("tool",))
    facts = facts_for(gone, {"db:Status-Abbrev": now, "Pre-Depends": depends, "showmanual": "tool\ntheirs:i386\n"})
    assert Database(facts).brought_by({"tool"}, "tool") == {"data", "libx"}
    change = gone.plan(facts)
    assert change is not None
    assert change.have == "tool 1"
