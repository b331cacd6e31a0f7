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
    assert "--reinstall" in change.steps[0].script
    assert change.steps[0].script.endswith(f"{HOLD}agent")


@pytest.mark.parametrize("table", ["bash\t5\tii \n", "agent\t2.0\thi \n"])
def test_a_package_of_a_file_that_is_missing_or_another_is_installed_whatever_is_there(table: str) -> None:
    for there in (True, False):
        change = debfile(table, there=there)
        assert change is not None and change.have in {"absent", "2.0"}
        assert "--reinstall" not in change.steps[0].script


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


def apt(folder: Path, simulation: str, *, known_after_update: bool = False) -> Path:
    """An ``apt-get`` that writes down what it is asked and answers simulations with ``simulation``."""
    log = folder / "log"
    known = f"[ -e {folder}/updated ] || exit 100" if known_after_update else ":"
    program(
        folder / "bin",
        "apt-get",
        f'case "$*" in *indextargets*) exit ;; esac; for word; do last=$word; done; echo "$*" >> {log}\n'
        f'case "$*" in *update) touch {folder}/updated ;; *" -s "*) {known}; printf "{simulation}" ;; esac',
    )
    return log


def calls(log: Path) -> list[str]:
    lines = log.read_text().splitlines()
    return ["update" if line.endswith(" update") else "simulate" if " -s " in line else "install" for line in lines]


def test_lists_are_fetched_only_when_the_package_is_not_known(tmp_path: Path) -> None:
    log = apt(tmp_path, "Inst gcc (1)\\n")
    assert run(install_script(("gcc",)), path=tmp_path / "bin").returncode == 0
    assert calls(log) == ["simulate", "install"]


def test_packages_are_listed_until_their_files_are_on_the_disk(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    log = apt(tmp_path, "Inst gcc (1)\\nInst cpp [1] (2)\\n")
    program(
        tmp_path / "bin", "sync", f'echo "sync $*" >>{log}; cat {origin}/unsynced >{tmp_path}/listed 2>/dev/null || :'
    )
    assert run(install_script(("gcc",)), path=tmp_path / "bin", origin=origin).returncode == 0
    *_, before, install, after = log.read_text().splitlines()
    assert (before, after) == (f"sync {origin}", "sync -f / /usr /var /opt /boot")
    assert "--force-unsafe-io" in install
    assert (tmp_path / "listed").read_text() == Path("/proc/sys/kernel/random/boot_id").read_text() + "cpp\ngcc\n"
    assert not (origin / "unsynced").exists()


def test_a_list_of_an_earlier_boot_is_kept_until_it_is_mended(tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "unsynced").write_text("another boot\nlibc6\n")
    log = apt(tmp_path, "Inst gcc (1)\\n")
    assert run(install_script(("gcc",)), path=tmp_path / "bin", origin=origin).returncode == 0
    assert "--force-unsafe-io" not in log.read_text()
    assert (origin / "unsynced").read_text() == "another boot\nlibc6\n"


def test_stale_lists_are_fetched_once(tmp_path: Path) -> None:
    log = apt(tmp_path, "Inst gcc (1)\\n", known_after_update=True)
    assert run(install_script(("gcc",)), path=tmp_path / "bin").returncode == 0
    assert calls(log) == ["simulate", "update", "simulate", "install"]


def test_a_guarded_name_in_the_simulation_stops_before_anything_is_installed(tmp_path: Path) -> None:
    log = apt(tmp_path, "Inst cuda-11-2 (1)\\nInst nvidia-driver-460 (460)\\n")
    done = run(install_script(("cuda-11-2",), guard="^nvidia-"), path=tmp_path / "bin")
    assert done.returncode == 1
    assert b"hostwright: apt would also install: nvidia-driver-460" in done.stdout
    assert "install" not in calls(log)


def test_a_guard_lets_everything_else_through(tmp_path: Path) -> None:
    log = apt(tmp_path, "Inst cuda-toolkit-11-2 (1)\\nInst libnvidia-old (1)\\n")
    assert run(install_script(("cuda-toolkit-11-2",), guard="^nvidia-"), path=tmp_path / "bin").returncode == 0
    assert calls(log)[-1] == "install"


UPGRADE = (
    "Inst libc6 [2.31-13] (2.31-13+deb11u5 Debian:11.5 [amd64])\\nInst gcc (10)\\nInst b [1] (2 Debian [amd64])\\n"
)


def test_what_is_upgraded_for_the_sake_of_a_package_is_named(tmp_path: Path) -> None:
    log = apt(tmp_path, UPGRADE)
    program(tmp_path / "bin", "apt-mark", "exit 0")
    done = run(install_script(("gcc", "b=2")), path=tmp_path / "bin")
    notes = [line for line in done.stdout.decode().splitlines() if line.startswith("hostwright: ")]
    assert notes == ["hostwright: note: installed with them, as they need it: libc6 2.31-13 → 2.31-13+deb11u5"]
    assert calls(log)[-1] == "install"


def test_a_hold_that_stands_in_the_way_is_named(tmp_path: Path) -> None:
    apt(tmp_path, "")
    clash = " docker-ce : Depends: containerd.io (>= 1.6.24) but 1.4.3-1 is to be installed"
    program(tmp_path / "bin", "apt-get", f'case "$*" in *" -s "*) echo "{clash}"; exit 100 ;; esac')
    program(tmp_path / "bin", "apt-mark", "echo containerd.io; echo vim")
    done = run(install_script(("docker-ce",)), path=tmp_path / "bin")
    told = (
        "hostwright: error: docker-ce cannot be installed beside what is on hold on this host: containerd.io (apt-mark"
    )
    assert done.returncode == 100
    assert told in done.stdout.decode()
    assert "vim" not in done.stdout.decode()


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


def test_a_package_that_somebody_holds_is_not_changed_for_another(tmp_path: Path) -> None:
    log = apt(tmp_path, UPGRADE)
    program(tmp_path / "bin", "apt-mark", "echo libc6")
    done = run(install_script(("gcc", "b")), path=tmp_path / "bin")
    told = "apt would change packages that are on hold on this host: libc6 (2.31-13 → 2.31-13+deb11u5)"
    assert done.returncode == 1
    assert told in done.stdout.decode()
    assert "install" not in calls(log)


def test_one_source_is_asked_alone_so_that_others_cannot_fail_it(tmp_path: Path) -> None:
    log = apt(tmp_path, "Inst a (1)\\n")
    assert run(install_script(("a",), source="/etc/apt/a.list"), path=tmp_path / "bin").returncode == 0
    assert calls(log) == ["update", "simulate", "install"]
    assert "SourceList=/etc/apt/a.list -o Dir::Etc::SourceParts=/dev/null" in log.read_text()


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
