"""Packages that come from the mirror, on a host: the real apt on a root of its own, with the files alone.

Each case of an installation without a network is one that other people met; the right answers were written down before.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from subprocess import CompletedProcess

from hostwright.resources.packages.packages import install_script
from hostwright.stack.stack import Artifact
from hostwright.stack.store.hostcache import CACHE
from tests.unit.support.aptroot import AptRoot, deb, installed, repository, served
from tests.unit.support.shell import program, run

WORKED_IN = Path("/var/tmp")  # noqa: S108 - where the step makes its own directory, by mktemp


def delivered(folder: Path, package: Path) -> Artifact:
    """A package file as the delivery leaves it on a host: below its sum, for root alone."""
    data = package.read_bytes()
    sha256 = hashlib.sha256(data).hexdigest()
    place = folder / "cache" / sha256
    place.mkdir(mode=0o700, parents=True)
    (place / package.name).write_bytes(data)
    (folder / "cache").chmod(0o700)
    return Artifact(name=package.name.lower().replace("_", "-").replace("~", "-"), file=package.name, sha256=sha256)


def install(
    apt: AptRoot, files: list[Path], *packages: str, guard: str = "", reinstall: bool = False, source: str = ""
) -> CompletedProcess[bytes]:
    folder = apt.root.parent
    given = tuple(delivered(folder, file) for file in files)
    script = install_script(packages or ("tool",), guard=guard, reinstall=reinstall, source=source, mirrored=given)
    return run(script.replace(CACHE, str(folder / "cache")), path=folder / "bin")


def said(done: CompletedProcess[bytes]) -> str:
    return done.stdout.decode() + done.stderr.decode()


def test_it_is_installed_from_the_files_alone_and_no_source_of_the_host_is_asked(apt: AptRoot, tmp_path: Path) -> None:
    with served(tmp_path / "theirs", status=503) as server:
        apt.source(f"deb [trusted=yes] {server.url} stable main\n")
        done = install(apt, [deb(tmp_path, "tool", Depends="lib"), deb(tmp_path, "lib")])
        assert server.asked == []
    assert done.returncode == 0, said(done)
    assert apt.unpacked == ["lib", "tool"]


def test_nothing_of_it_stays_and_the_lists_of_the_host_do(apt: AptRoot, tmp_path: Path) -> None:
    lists = apt.root / "var/lib/apt/lists"
    (lists / "theirs_Packages").write_text("Package: theirs\n")
    before = set(WORKED_IN.glob("hostwright-packages.*"))
    assert install(apt, [deb(tmp_path, "tool")]).returncode == 0
    assert set(WORKED_IN.glob("hostwright-packages.*")) == before
    assert sorted(path.name for path in lists.iterdir()) == ["partial", "theirs_Packages"]


def test_files_that_apts_own_user_cannot_read_are_installed_without_a_word(apt: AptRoot, tmp_path: Path) -> None:
    done = install(apt, [deb(tmp_path, "tool")])
    assert done.returncode == 0
    assert "unsandboxed" not in said(done) and "Permission" not in said(done)


def test_apt_decides_which_of_the_files_are_needed(apt: AptRoot, tmp_path: Path) -> None:
    files = [deb(tmp_path, "tool", Depends="lib | other"), deb(tmp_path, "lib"), deb(tmp_path, "other")]
    apt.status(installed("other"))
    assert install(apt, files).returncode == 0
    assert apt.unpacked == ["tool"]


def test_what_provides_a_version_satisfies_it(apt: AptRoot, tmp_path: Path) -> None:
    files = [deb(tmp_path, "tool", Depends="api (<= 9)"), deb(tmp_path, "backend", Provides="api (= 7)")]
    assert install(apt, files).returncode == 0
    assert apt.unpacked == ["backend", "tool"]


def test_names_with_a_tilde_and_versions_with_an_epoch_are_installed(apt: AptRoot, tmp_path: Path) -> None:
    made = deb(tmp_path, "tool", "1:2~rc1+b1")
    odd = made.rename(tmp_path / "tool_2~rc1+b1_amd64.deb")  # the archive's files have no epoch in their names
    done = install(apt, [odd], "tool=1:2~rc1+b1")
    assert done.returncode == 0, said(done)
    assert apt.unpacked == ["tool"]


def test_a_host_with_newer_packages_is_not_downgraded_and_is_told_to_renew(apt: AptRoot, tmp_path: Path) -> None:
    apt.status(installed("lib", "2"))
    done = install(apt, [deb(tmp_path, "tool", Depends="lib (= 1)"), deb(tmp_path, "lib", "1")])
    assert done.returncode == 100
    assert "hostwright: error: the packages of the mirror do not fit what this host has" in said(done)
    assert "--renew" in said(done) and "lib (= 1)" in said(done)
    assert apt.unpacked == []


def test_a_guard_holds_as_with_any_source(apt: AptRoot, tmp_path: Path) -> None:
    done = install(apt, [deb(tmp_path, "tool", Depends="driver"), deb(tmp_path, "driver")], guard="^driver")
    assert done.returncode == 1
    assert "apt would also install: driver" in said(done)
    assert apt.unpacked == []


def test_a_package_is_unpacked_again_from_its_file(apt: AptRoot, tmp_path: Path) -> None:
    apt.status(installed("tool"))
    assert install(apt, [deb(tmp_path, "tool")], "tool=1", reinstall=True).returncode == 0
    assert apt.unpacked == ["tool"]


def test_what_is_to_be_installed_is_noted_before(apt: AptRoot, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    (origin / "installed").touch()
    (origin / "unsynced").write_text("another boot\n")  # nothing is added to such a list
    given = (delivered(tmp_path, deb(tmp_path, "tool")),)
    program(tmp_path / "bin", "dpkg", f'case "$*" in *--unpack*) cp {origin}/installed {tmp_path}/noted ;; esac')
    script = install_script(("tool",), mirrored=given).replace(CACHE, str(tmp_path / "cache"))
    assert run(script, path=tmp_path / "bin", origin=origin).returncode == 0
    assert (tmp_path / "noted").read_text() == "tool\n"


def test_a_file_that_is_damaged_ends_the_step(apt: AptRoot, tmp_path: Path) -> None:
    good = deb(tmp_path, "tool")
    (tmp_path / "tool_1_amd64.deb").write_bytes(good.read_bytes()[:100])
    done = install(apt, [good])
    assert done.returncode != 0
    assert apt.unpacked == []


def test_a_held_package_is_not_moved_for_anothers_sake_and_is_named(apt: AptRoot, tmp_path: Path) -> None:
    """As from any source: apt moves a held package only where it is asked for by its name."""
    apt.status(installed("lib", "1", state="hold ok installed"), installed("other", "1", state="hold ok installed"))
    files = [deb(tmp_path, "tool", Depends="lib (>= 2)"), deb(tmp_path, "lib", "2")]
    done = install(apt, files)
    assert done.returncode == 100
    assert "; held there: lib\n" in said(done)
    assert apt.unpacked == []


def test_a_held_package_that_is_asked_for_is_moved(apt: AptRoot, tmp_path: Path) -> None:
    apt.status(installed("lib", "1", state="hold ok installed"))
    assert install(apt, [deb(tmp_path, "lib", "2")], "lib=2").returncode == 0
    assert apt.unpacked == ["lib"]


def test_the_list_of_the_files_is_read_without_complaints(apt: AptRoot, tmp_path: Path) -> None:
    done = install(apt, [deb(tmp_path, "tool")])
    assert done.returncode == 0
    assert [line for line in said(done).splitlines() if line.startswith(("Err", "E:", "W: Failed"))] == []


def test_nothing_is_removed_for_a_library_that_the_host_has_for_two_architectures(apt: AptRoot, tmp_path: Path) -> None:
    with apt.config.open("a") as config:
        config.write('APT::Architectures { "i386"; };\n')
    own = installed("lib", Multi_Arch="same")
    apt.status(own, own.replace("Architecture: amd64", "Architecture: i386"))
    done = install(apt, [deb(tmp_path, "tool", Depends="lib (>= 2)"), deb(tmp_path, "lib", "2", Multi_Arch="same")])
    assert done.returncode == 100
    assert "lib:i386" in said(done) and "--renew" in said(done)
    assert apt.unpacked == [] and "--remove" not in apt.calls.read_text()


def test_what_must_be_there_before_is_configured_first(apt: AptRoot, tmp_path: Path) -> None:
    assert install(apt, [deb(tmp_path, "tool", Pre_Depends="lib"), deb(tmp_path, "lib")]).returncode == 0
    calls = apt.calls.read_text().splitlines()
    unpacked = [number for number, call in enumerate(calls) if "--unpack" in call]
    configured = next(number for number, call in enumerate(calls) if "--configure" in call and "lib" in call)
    assert unpacked[0] < configured < unpacked[-1]
    assert "/lib_1" in calls[unpacked[0]] and "/tool_1" in calls[unpacked[-1]]


def test_packages_of_a_source_of_their_own_come_from_there_and_what_they_need_from_the_files(
    apt: AptRoot, tmp_path: Path
) -> None:
    theirs = repository(tmp_path / "theirs", deb(tmp_path, "toolkit", Depends="lib"))
    with served(tmp_path / "archive", status=503) as server:
        apt.source(f"deb [trusted=yes] {server.url} stable main\n")
        source = apt.source(f"deb [trusted=yes] file:{theirs} stable main\n", "theirs.list")
        done = install(apt, [deb(tmp_path, "lib")], "toolkit=1", source=source)
        assert server.asked == []
    assert done.returncode == 0, said(done)
    assert apt.unpacked == ["lib", "toolkit"]
