"""Packages: what is planned from dpkg's table, and what the commands make of apt's answers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change
from hostwright.plan.testing import plan_text
from hostwright.resources.packages.debfile import DebFile
from hostwright.resources.packages.dpkg import HOLD
from hostwright.resources.packages.packages import (
    DPKG_LOCK,
    PATIENTLY,
    Debs,
    DebsAbsent,
    DpkgInOrder,
    install_script,
)
from hostwright.stack.stack import Artifact
from tests.unit.support.facts import changes_of
from tests.unit.support.forks import forks
from tests.unit.support.shell import program, run

TABLE = "bash\t5.1-2\tii \ndocker.io\t20.10\thi \nold\t1\trc \nhalf\t2\tiU \n"
IN_ORDER = "bash\t5.1-2\tii \n"


def plan(resource: Debs | DebsAbsent | DpkgInOrder, table: str = TABLE, journal: str = "") -> Change | None:
    changes = changes_of(resource, {"dpkg-query": table, "/var/lib/dpkg/updates": journal})
    return changes[0] if changes else None


@pytest.mark.parametrize("words", [("bash",), ("bash=5.1-2",), ("docker.io=20.10", "bash")])
def test_packages_that_are_there_plan_nothing(words: tuple[str, ...]) -> None:
    assert plan(Debs(words)) is None


@pytest.mark.parametrize(
    ("word", "have"),
    [("gcc", "gcc absent"), ("bash=5.2", "bash 5.1-2"), ("old", "old absent"), ("half=2", "half absent")],
)
def test_packages_that_are_missing_or_at_another_version_are_named(word: str, have: str) -> None:
    change = plan(Debs((word, "bash")))
    assert change is not None
    assert (change.have, change.want) == (have, word)
    assert change.steps[0].lock == DPKG_LOCK


def test_a_package_that_is_there_is_held_without_installing_anything() -> None:
    change = plan(Debs(("bash", "docker.io"), hold=True))
    assert change is not None
    assert (change.have, change.want) == ("bash not held", "bash held")
    assert change.steps[0].script == f"{HOLD}bash docker.io"


def debfile(table: str, *, there: bool) -> Change | None:
    file = Artifact(name="agent", file="agent_2.1_amd64.deb", sha256="0" * 64)
    replies = {"dpkg-query": table, "[ -s /usr/bin/agent ]": Answer(0 if there else 1, "")}
    changes = changes_of(DebFile(file, "agent", "2.1", file="/usr/bin/agent"), replies)
    return changes[0] if changes else None


def test_a_package_of_a_file_whose_own_file_is_gone_is_unpacked_again() -> None:
    assert debfile("agent\t2.1\thi \n", there=True) is None
    change = debfile("agent\t2.1\thi \n", there=False)
    assert change is not None
    assert (change.have, change.artifacts) == ("/usr/bin/agent gone", ("agent",))
    assert " --reinstall'" in change.steps[0].script
    assert change.steps[0].script.endswith(f"{HOLD}agent")


@pytest.mark.parametrize("table", ["bash\t5\tii \n", "agent\t2.0\thi \n"])
def test_a_package_of_a_file_that_is_missing_or_another_is_installed_whatever_is_there(table: str) -> None:
    for there in (True, False):
        change = debfile(table, there=there)
        assert change is not None and change.have in {"absent", "2.0"}
        assert " --reinstall'" not in change.steps[0].script


def test_a_package_of_a_file_is_held_without_unpacking_anything() -> None:
    change = debfile("agent\t2.1\tii \n", there=True)
    assert change is not None and (change.have, change.artifacts) == ("not held", ())


def test_what_came_for_anothers_sake_is_wanted_for_itself() -> None:
    """dkms, which a distribution's driver brought, goes with that driver at the next `apt autoremove`."""
    there = {"dpkg-query": "dkms\t2.8\tii \ngcc\t10\tii \nkmod\t28\thi \n", "extended_states": "dkms\nkmod\nlibx\n"}
    (change,) = changes_of(Debs(("gcc", "dkms", "make")), there)
    assert (change.have, change.want) == ("make absent, dkms automatic", "make, dkms manual")
    (change,) = changes_of(Debs(("dkms", "kmod")), there)
    assert change.steps[0].script.endswith("apt-mark manual dkms kmod")
    assert "apt-get" not in change.steps[0].script
    assert changes_of(Debs(("gcc",)), there) == ()


def test_absent_packages_are_found_by_pattern_and_what_is_kept_is_kept() -> None:
    table = "nvidia-driver-460\t460\tii \nnvidia-container-toolkit\t1.17\tii \nnvidia-utils-460\t460\trc \n"
    change = plan(DebsAbsent(("nvidia-*",), "two drivers", keep=("nvidia-container-*",)), table)
    assert change is not None
    assert change.have == "nvidia-driver-460 460"
    assert change.want == "absent (two drivers)"
    assert change.steps[0].script.endswith("purge nvidia-driver-460")
    assert plan(DebsAbsent(("nvidia-*",), "two drivers"), IN_ORDER) is None


@pytest.mark.parametrize("state", ["iU ", "iF ", "iH ", "iW ", "it ", "iiR"])
def test_an_interrupted_dpkg_is_mended_before_it_is_used(state: str) -> None:
    change = plan(DpkgInOrder(), f"half\t2\t{state}\n")
    assert change is not None
    assert change.have == "interrupted (half)"
    assert "dpkg --configure -a" in change.steps[0].script


def test_an_unfinished_journal_is_an_interrupted_dpkg() -> None:
    assert plan(DpkgInOrder(), IN_ORDER) is None
    change = plan(DpkgInOrder(), IN_ORDER, "0001\n")
    assert change is not None
    assert change.have == "interrupted (unfinished journal)"


def test_the_lock_is_waited_for_and_never_removed() -> None:
    script = install_script(("gcc",))
    assert "DPkg::Lock::Timeout=600" in script
    assert not any("rm " in line and "lock" in line for line in script.splitlines())


def apt(folder: Path, simulation: str) -> Path:
    """An ``apt-get`` that writes down what it is asked and answers with ``simulation``."""
    log = folder / "log"
    program(folder / "bin", "apt-get", f'echo "$*" >> {log}; printf "{simulation}"')
    return log


UPGRADE = (
    "Inst libc6 [2.31-13] (2.31-13+deb11u5 Debian:11.5 [amd64])\\nInst gcc (10)\\nInst b [1] (2 Debian [amd64])\\n"
)


def test_the_plan_names_what_apt_changes_for_them() -> None:
    moves = "moves libc6 2.31-13 2.31-13+deb11u5\nremoves old-tool\nmoves gcc 9 10\n"
    text = plan_text(Debs(("gcc",)), {"moves": moves})
    assert "apt also changes installed packages: libc6 2.31-13 → 2.31-13+deb11u5" in text
    assert "apt would also remove old-tool; in that case the change fails and installs nothing" in text
    assert "gcc 9" not in text


def test_apts_simulation_is_read_only_where_a_package_is_missing(tmp_path: Path) -> None:
    info = tmp_path / "info"
    info.mkdir()
    (info / "libz:amd64.list").touch()
    (asked,) = (probe for probe in Debs(("gcc=10", "libz")).probes() if "apt-get" in probe.script)
    script = asked.script.replace("/var/lib/dpkg/info", str(info))
    simulation = UPGRADE.replace("Inst gcc", "Remv old [1]\\nInst gcc")
    log = apt(tmp_path, simulation)
    done = run(script, path=tmp_path / "bin")
    assert done.stdout.decode().splitlines() == ["moves libc6 2.31-13 2.31-13+deb11u5", "removes old", "moves b 1 2"]
    assert log.read_text().split()[-1] == "gcc=10"
    (info / "gcc.list").touch()
    assert forks(script) == 0


def test_apt_is_not_asked_about_packages_whose_source_is_yet_to_come(tmp_path: Path) -> None:
    source = tmp_path / "vendor.list"
    (asked,) = (probe for probe in Debs(("made-up=10",), source=str(source)).probes() if "apt-get" in probe.script)
    log = apt(tmp_path, UPGRADE)
    assert run(asked.script, path=tmp_path / "bin").stdout == b""
    assert forks(asked.script) == 0
    source.touch()
    assert b"moves b 1 2" in run(asked.script, path=tmp_path / "bin").stdout
    assert log.read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("command", "status", "tries"),
    [
        ("echo fine", 0, 1),
        ("echo broken; exit 3", 1, 1),
        ("test $n -ge 2 || { echo dpkg frontend lock was locked by another process with pid 7; exit 2; }", 0, 2),
        ("test $n -ge 2 || { echo E: Could not get lock /var/lib/apt/lists/lock.; exit 100; }", 0, 2),
    ],
)
def test_a_lock_is_waited_for_and_nothing_else(tmp_path: Path, command: str, status: int, tries: int) -> None:
    count = tmp_path / "count"
    script = f"{PATIENTLY} sh -c 'echo >>{count}; n=$(wc -l <{count}); {command}'"
    done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, count.read_text().count("\n")) == (status, tries)
    assert ("broken" in done.stdout) == (status == 1)


def test_half_unpacked_package_is_unpacked_before_configuring():
    """``dpkg --configure -a`` and ``apt-get -f`` both refuse it: "in a very bad inconsistent state"."""
    (change,) = changes_of(DpkgInOrder(), {"dpkg-query": "gcc-10\t10.2.1-6\tiHR\n"})
    script = change.steps[0].script
    assert "gcc-10" in change.have
    assert script.index("reinstreq") < script.index("dpkg --unpack") < script.index("\nconfigured ||")
    assert change.steps[0].tries > 1


@pytest.mark.parametrize("has_archive", [True, False])
def test_half_unpacked_package_is_reinstalled_or_removed(tmp_path: Path, has_archive: bool) -> None:
    bin_, log = tmp_path / "bin", tmp_path / "log"
    program(
        bin_,
        "dpkg-query",
        'case "$2" in *Eflag*) echo "reinstreq gcc-10:amd64"; echo "ok bash" ;; *) echo 10.2.1-6 ;; esac',
    )
    program(bin_, "dpkg", f'echo "dpkg $*" >>{log}')
    has, download = (":", "touch gcc-10.deb") if has_archive else ("exit 100", "exit 100")
    program(
        bin_,
        "apt-get",
        f'echo "apt-get $*" >>{log}\ncase "$*" in *update) echo Hit:1 ;; *--print-uris*) {has} ;; '
        f"*download*) {download} ;; esac",
    )
    replies = {"dpkg-query": "gcc-10\t10.2.1-6\tiHR\n", "--print-uris": "gone gcc-10:amd64\n"}
    (change,) = changes_of(DpkgInOrder(), replies)
    assert run(change.steps[0].script, path=bin_).returncode == 0
    looks = ("--print-uris", "indextargets", " update", " -s ")
    does = [line for line in log.read_text().splitlines() if not any(word in line for word in looks)]
    *fetch, unpack, configure, fix, last = does
    assert fetch == (["apt-get -q download gcc-10:amd64=10.2.1-6"] if has_archive else [])
    gone = "dpkg --remove --force-remove-reinstreq --force-depends gcc-10:amd64"
    assert unpack == ("dpkg --unpack ./gcc-10.deb" if has_archive else gone)
    assert configure == "dpkg --configure -a --force-confdef --force-confold"
    assert fix.startswith("apt-get -y ") and fix.endswith(" -f --no-install-recommends install")
    assert last == "dpkg --configure -a"


def test_apt_is_not_asked_what_else_a_leaf_changes() -> None:
    asked, unasked = (Debs(("tool",), leaf=leaf).probes() for leaf in (False, True))
    assert [probe for probe in asked if "apt-get" in probe.script]
    assert [probe for probe in unasked if "apt-get" in probe.script] == []
