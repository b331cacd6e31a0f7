"""Calls of apt in an installation, records before dpkg runs, and refusals.

apt is real, on a root of its own; a log has each call of ``apt-get``. The program of the hook also gets lines that apt
printed in other cases.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from hostwright.common.quoting import sh_file
from hostwright.resources.packages import packages
from hostwright.resources.packages.packages import install_script
from tests.unit.support.aptroot import AptRoot, deb, installed, repository
from tests.unit.support.known import KNOWN
from tests.unit.support.shell import program, run

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")


@pytest.fixture
def asked(apt: AptRoot, tmp_path: Path) -> Path:
    """A file with a line for each call of apt-get; a repository with ``tool``, which depends on ``lib`` 2."""
    folder = repository(tmp_path / "r", deb(tmp_path, "tool", Depends="lib (>= 2)"), deb(tmp_path, "lib", "2"))
    apt.source(f"deb [trusted=yes] file:{folder} stable main\n")
    log = tmp_path / "asked"
    program(tmp_path / "bin", "apt-get", f'echo "$*" >>{log}; exec {shutil.which("apt-get")} "$@"')
    return log


def calls(log: Path) -> list[str]:
    """Return the kind of each logged call of apt-get, and delete the log."""
    words = [line.split() for line in log.read_text().splitlines()]
    log.unlink()
    kinds = ["simulate" if "-s" in line else "update" if "update" in line else "install" for line in words]
    return [kind for kind, line in zip(kinds, words, strict=True) if "indextargets" not in line]


def install(tmp_path: Path, *names: str, **options: str) -> CompletedProcess[bytes]:
    return run(install_script(names, **options), path=tmp_path / "bin", origin=tmp_path / "origin")  # type: ignore[arg-type]


def test_an_installation_is_one_run_of_apt_and_stale_lists_are_fetched_once(
    apt: AptRoot, asked: Path, tmp_path: Path
) -> None:
    assert install(tmp_path, "tool").returncode == 0
    assert calls(asked) == ["install", "simulate", "update", "simulate", "install"]
    assert install(tmp_path, "tool").returncode == 0
    assert calls(asked) == ["install"]


def test_one_source_is_asked_alone_so_that_others_cannot_fail_it(apt: AptRoot, asked: Path, tmp_path: Path) -> None:
    source = str(apt.etc / "sources.list.d/a.list")
    assert install(tmp_path, "tool", source=source).returncode == 0
    assert f"SourceList={source} -o Dir::Etc::SourceParts=/dev/null" in asked.read_text()
    assert calls(asked) == ["update", "install"]


def unpacked(tmp_path: Path) -> Path:
    """Let dpkg copy the list of packages whose files are not on the disk yet; return the copy's path."""
    copy = tmp_path / "listed"
    program(tmp_path / "bin", "dpkg", f'case "$*" in *--unpack*) cp {tmp_path}/origin/unsynced {copy} ;; esac')
    return copy


def test_packages_are_listed_until_their_files_are_on_the_disk(apt: AptRoot, asked: Path, tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    apt.status(installed("lib"))
    listed = unpacked(tmp_path)
    program(tmp_path / "bin", "sync", f'echo "$*" >>{tmp_path}/synced')
    assert install(tmp_path, "tool").returncode == 0
    assert listed.read_text() == f"{BOOT}lib\ntool\n"
    assert (tmp_path / "synced").read_text().splitlines()[-1] == "-f / /usr /var /opt /boot"
    assert "--force-unsafe-io" in asked.read_text()
    assert not (tmp_path / "origin/unsynced").exists()


def test_a_list_of_an_earlier_boot_is_kept_until_it_is_mended(apt: AptRoot, asked: Path, tmp_path: Path) -> None:
    (tmp_path / "origin").mkdir()
    (tmp_path / "origin/unsynced").write_text("another boot\nlibc6\n")
    listed = unpacked(tmp_path)
    assert install(tmp_path, "tool").returncode == 0
    assert "--force-unsafe-io" not in asked.read_text()
    assert listed.read_text() == "another boot\nlibc6\n" == (tmp_path / "origin/unsynced").read_text()


def test_what_is_upgraded_for_the_sake_of_a_package_is_named(apt: AptRoot, asked: Path, tmp_path: Path) -> None:
    apt.status(installed("lib"))
    done = install(tmp_path, "tool")
    notes = [line for line in done.stdout.decode().splitlines() if line.startswith("hostwright: ")]
    assert notes == ["hostwright: note: installed with them, as they need it: lib 1 → 2"]
    assert apt.unpacked == ["lib", "tool"]


def test_a_guarded_name_stops_before_anything_is_installed(apt: AptRoot, asked: Path, tmp_path: Path) -> None:
    assert install(tmp_path, "tool", guard="^other").returncode == 0
    apt.calls.write_text("")
    done = install(tmp_path, "tool", guard="^l.b$")
    assert done.returncode == 1
    assert b"hostwright: apt would also install: lib\n" in done.stdout
    assert calls(asked)[-1] == "install" and apt.unpacked == []
    assert KNOWN.explained(done.stderr.decode()) is None  # apt's words about the hook, which only refused


def test_a_package_that_was_refused_is_not_noted_as_ours(apt: AptRoot, asked: Path, tmp_path: Path) -> None:
    ours = tmp_path / "origin/installed"
    ours.parent.mkdir()
    ours.touch()
    assert install(tmp_path, "tool", guard="^lib").returncode == 1
    assert ours.read_text() == ""
    assert install(tmp_path, "tool").returncode == 0
    assert ours.read_text() == "tool\n"


HOOK = """\
VERSION 3
APT::Architecture=amd64
DPkg::Pre-Install-Pkgs::=exec sh

libc6 2.31-13 amd64 same < 2.31-13+deb11u5 amd64 same /var/cache/apt/archives/libc6_2.31_amd64.deb
libc6 2.31-13 i386 same < 2.31-13+deb11u5 i386 same /var/cache/apt/archives/libc6_2.31_i386.deb
gcc - - none < 10 amd64 none /var/cache/apt/archives/gcc_10_amd64.deb
libc6 2.31-13 amd64 same < 2.31-13+deb11u5 amd64 same **CONFIGURE**
half 1 all none = 1 all none **CONFIGURE**
"""
REMOVED = "old 1 amd64 none > - - none **REMOVE**\n"
SIMULATION = """\
Inst libc6 [2.31-13] (2.31-13+deb11u5 Debian:11.5 [amd64]) []
Inst libc6:i386 [2.31-13] (2.31-13+deb11u5 Debian:11.5 [i386])
Inst gcc (10 Debian:11.5 [amd64])
Conf libc6 (2.31-13+deb11u5 Debian:11.5 [amd64])
"""


def fits(tmp_path: Path, doing: str, *, held: str = "", guard: str = "") -> tuple[int, list[str]]:
    """Return the exit status and the lines of the program that reads what apt is about to do."""
    program(tmp_path / "bin", "apt-mark", f"printf '%s' '{held}'")
    text = sh_file(packages.__file__, "sh/fits.sh", packages=("gcc", "b=2"), guard=guard, installed=tmp_path / "ours")
    (tmp_path / "fits").write_text(text)
    (tmp_path / "fits.refused").unlink(missing_ok=True)
    done = run(
        f"sh -eu {tmp_path}/fits {'-' if doing.startswith('VERSION') else ''} <<'END'\n{doing}END\n",
        path=tmp_path / "bin",
    )
    assert (tmp_path / "fits.refused").exists() == (done.returncode == 1)
    return done.returncode, done.stdout.decode().splitlines()


@pytest.mark.parametrize("doing", [HOOK, SIMULATION])
def test_the_hook_and_a_simulation_say_the_same(tmp_path: Path, doing: str) -> None:
    change = "2.31-13 → 2.31-13+deb11u5"
    notes = [
        f"hostwright: note: installed with them, as they need it: {name} {change}" for name in ("libc6", "libc6:i386")
    ]
    assert fits(tmp_path, doing) == (0, notes)
    assert fits(tmp_path, doing, guard="i386") == (1, [*notes, "hostwright: apt would also install: libc6:i386"])
    status, (told,) = fits(tmp_path, doing, held="vim\nlibc6:i386\n")
    assert status == 1 and "apt would change packages that are on hold on this host (apt-mark unhold NAME" in told
    assert told.endswith(f": libc6:i386 ({change})")


@pytest.mark.parametrize("doing", [HOOK + REMOVED, SIMULATION + "Remv old [1]\n"])
def test_nothing_is_removed_but_what_is_ours(tmp_path: Path, doing: str) -> None:
    assert fits(tmp_path, doing) == (1, ["hostwright: error: to install gcc b=2, apt would remove old"])
    (tmp_path / "ours").write_text("old\n")
    assert fits(tmp_path, doing)[0] == 0


def test_a_hook_that_is_told_of_files_alone_lets_nothing_through(tmp_path: Path) -> None:
    """Version 1 of apt's protocol names neither versions nor removals."""
    text = sh_file(packages.__file__, "sh/fits.sh", packages=("gcc",), guard="", installed=tmp_path / "ours")
    (tmp_path / "fits").write_text(text)
    assert run(f"sh -eu {tmp_path}/fits - <<'END'\n/var/cache/apt/archives/gcc_10_amd64.deb\nEND\n").returncode == 1
    assert run(f"sh -eu {tmp_path}/fits - <<'END'\n{HOOK}END\n").returncode == 0
