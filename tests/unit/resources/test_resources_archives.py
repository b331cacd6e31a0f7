"""Archives spread over shared directories: real archives, real files, the real commands."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.files import archives
from hostwright.resources.files.archives import ArchiveUnpacked, Delivered, NoStrayFiles, Part
from hostwright.resources.files.aside import ASIDE, KEEP_ASIDE
from hostwright.resources.originals import ORIGIN
from hostwright.stack.stack import Artifact
from hostwright.stack.store import hostcache
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask, program, run

FILES = {"include/a.h": "1", "include/a b$(id).h": "2", "lib64/libx.so.8.1": "eight"}
LINKS = {"lib64/libx.so": "libx.so.8", "lib64/libx.so.8": "libx.so.8.1"}


def pack(path: Path, files: dict[str, str], links: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"top/{name}")
            info.size, info.mtime = len(text), 1_600_000_000
            tar.addfile(info, BytesIO(text.encode()))
        for name, target in links.items():
            info = tarfile.TarInfo(f"top/{name}")
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)


@pytest.fixture
def spread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ArchiveUnpacked:
    """An archive that lies where the engine would have put it, and the directories that it goes to."""
    monkeypatch.setattr(archives, "RECORDS", str(tmp_path / "records"))
    monkeypatch.setattr(archives, "SET_ASIDE", str(tmp_path / "aside"))
    monkeypatch.setattr(archives, "KEEP_ASIDE", KEEP_ASIDE.replace(ASIDE, str(tmp_path / "kept")))
    monkeypatch.setattr(archives, "host_path", lambda one: hostcache.host_path(one, str(tmp_path / "cache")))
    return version(tmp_path, "8.1", FILES, LINKS)


def version(folder: Path, number: str, files: dict[str, str], links: dict[str, str]) -> ArchiveUnpacked:
    artifact = Artifact(name="x", file="x.tgz", sha256=number.replace(".", "").ljust(64, "0"))
    place = Path(hostcache.host_path(artifact, str(folder / "cache")))
    place.parent.mkdir(parents=True)
    pack(place, files, links)
    parts = (Part("top/include", str(folder / "inc")), Part("top/lib64", str(folder / "lib")))
    return ArchiveUnpacked("x", number, artifact, parts, str(folder / "scratch"))


def plan(resource: Resource) -> Change | None:
    """What the resource plans of the answers that its own probes give on this machine."""
    return resource.plan(Facts({probe: Answer(*ask(probe.script)) for probe in resource.probes()}))


def apply(resource: Resource) -> Change:
    change = plan(resource)
    assert change is not None
    for step in change.steps:
        done = run(step.script)
        assert done.returncode == 0, done.stderr
    assert plan(resource) is None
    return change


def test_links_stay_links_and_everything_arrives(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    change = apply(spread)
    assert (change.have, change.want, change.artifacts) == ("no record of its files", "8.1", ("x",))
    for name, text in FILES.items():
        assert (tmp_path / name.replace("include", "inc").replace("lib64", "lib")).read_text() == text
    assert {name: str((tmp_path / name.replace("64", "")).readlink()) for name in LINKS} == LINKS
    assert not (tmp_path / "scratch").exists()


def test_files_of_others_stay(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc/cuda.h").write_text("other")
    apply(spread)
    assert (tmp_path / "inc/cuda.h").read_text() == "other"


def test_flattened_links_of_a_host_done_by_hand_become_links(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for name in ("libx.so", "libx.so.8", "libx.so.8.1"):
        (tmp_path / "lib" / name).write_text("eight")
    apply(spread)
    assert str((tmp_path / "lib/libx.so.8").readlink()) == "libx.so.8.1"


@pytest.mark.parametrize("damage", ["turned", "gone", "flattened"])
def test_a_damaged_link_is_mended_alone_and_without_the_archive(
    spread: ArchiveUnpacked, tmp_path: Path, damage: str
) -> None:
    apply(spread)
    link = tmp_path / "lib/libx.so.8"
    link.unlink()
    if damage == "turned":
        link.symlink_to("libx.so.7")
    elif damage == "flattened":
        link.write_text("eight")
    before = (tmp_path / "lib/libx.so.8.1").stat()
    change = apply(spread)
    assert change.artifacts == ()
    assert str(link) in change.have
    after = (tmp_path / "lib/libx.so.8.1").stat()
    assert "tar" not in change.steps[0].script.split()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )


@pytest.mark.parametrize("name", ["inc/a b$(id).h", "lib/libx.so.8.1"])
def test_a_damaged_file_is_mended_alone(spread: ArchiveUnpacked, tmp_path: Path, name: str) -> None:
    apply(spread)
    other = (tmp_path / "inc/a.h").stat()
    (tmp_path / name).write_text("damaged")
    change = apply(spread)
    assert (change.artifacts, change.want) == (("x",), f"file of {len((tmp_path / name).read_text())} bytes")
    assert (tmp_path / "inc/a.h").stat() == other


def test_bytes_of_the_same_number_written_later_are_found_and_kept(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    apply(spread)
    (tmp_path / "lib/libx.so.8.1").write_text("wrong")
    change = apply(spread)
    assert (tmp_path / "lib/libx.so.8.1").read_text() == "eight"
    path = tmp_path / "lib/libx.so.8.1"
    assert change.warnings == (
        f"files of x that were replaced by others: the replacements are kept in {ASIDE}/DATE: {path}",
    )
    assert kept(tmp_path) == {"lib/libx.so.8.1": "wrong"}


def kept(folder: Path) -> dict[str, str]:
    """What was kept aside of the files below a folder."""
    days = list((folder / "kept").iterdir()) if (folder / "kept").exists() else []
    return {path: text for day in days for path, text in tree(day / str(folder)[1:]).items()}


def test_a_file_in_the_place_of_a_link_is_kept_though_a_pipe_is_where_the_link_led(
    spread: ArchiveUnpacked, tmp_path: Path
) -> None:
    apply(spread)
    for name in ("libx.so.8", "libx.so.8.1"):
        (tmp_path / "lib" / name).unlink()
    (tmp_path / "lib/libx.so.8").write_text("theirs")
    os.mkfifo(tmp_path / "lib/libx.so.8.1")
    change = plan(spread)
    assert change is not None
    script = change.steps[0].script.replace(ORIGIN, str(tmp_path / "origin"))
    done = subprocess.run(["timeout", "20", "/bin/sh", "-euc", script], check=False)
    assert done.returncode == 0
    assert kept(tmp_path) == {"lib/libx.so.8": "theirs"}


@pytest.mark.parametrize("flat", [False, True])  # cp without -P makes files of links (easybuild-easyconfigs#13771)
def test_a_hand_copy_of_the_same_bytes_is_recorded_anew_and_not_kept_twice(
    spread: ArchiveUnpacked, tmp_path: Path, *, flat: bool
) -> None:
    apply(spread)
    for name in ("libx.so.8", "libx.so.8.1") if flat else ("libx.so.8.1",):
        (tmp_path / "lib" / name).unlink()
        (tmp_path / "lib" / name).write_text("eight")
    apply(spread)
    assert tree(tmp_path / "lib") == {"libx.so": "libx.so.8", "libx.so.8": "libx.so.8.1", "libx.so.8.1": "eight"}
    assert kept(tmp_path) == {}


def test_what_people_changed_of_one_version_is_kept_when_the_next_replaces_it(
    spread: ArchiveUnpacked, tmp_path: Path
) -> None:
    apply(spread)
    (tmp_path / "inc/a.h").write_text("patched")
    (tmp_path / "lib/libx.so.8.1").write_text("built by hand")
    (tmp_path / "inc/a b$(id).h").write_text("")
    change = apply(version(tmp_path, "8.2", {"include/a.h": "2", "lib64/libx.so.8.2": "newer"}, {}))
    assert "inc/a.h" in change.warnings[0]
    assert kept(tmp_path) == {"inc/a.h": "patched", "lib/libx.so.8.1": "built by hand"}


def test_another_version_takes_the_files_of_the_one_before_with_it(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    apply(spread)
    files = {"include/a.h": "1", "lib64/libx.so.8.2": "newer"}
    newer = version(tmp_path, "8.2", files, {"lib64/libx.so.8": "libx.so.8.2"})
    assert apply(newer).have == "8.1"
    assert sorted(path.name for path in (tmp_path / "lib").iterdir()) == ["libx.so.8", "libx.so.8.2"]


def test_cut_anywhere_it_is_whole_after_the_next_run(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    change = plan(spread)
    assert change is not None
    lines = change.steps[0].script.splitlines()
    for cut in range(1, len(lines)):
        run("\n".join(lines[:cut]))
        assert plan(spread) is not None, "the record may only be there when everything else is"
        if cut == len(lines) - 2:
            break
    apply(spread)
    assert str((tmp_path / "lib/libx.so").readlink()) == "libx.so.8"


def test_an_archive_of_another_shape_leaves_no_record(spread: ArchiveUnpacked, tmp_path: Path) -> None:
    wrong = replace(spread, parts=(Part("elsewhere", str(tmp_path / "inc")),))
    change = plan(wrong)
    assert change is not None
    assert run(change.steps[0].script).returncode != 0
    assert plan(wrong) is not None


TREE = {"bin/python3.9": "ELF", "lib/python3.9/os.py": "os", "lib/python3.9/json/__init__.py": "json"}
TREE_LINKS = {"bin/python3": "python3.9", "share/only/links": "../../bin/python3.9"}


def interpreter(folder: Path, number: str = "3.9.2", files: dict[str, str] = TREE) -> ArchiveUnpacked:
    """An archive whose whole tree goes to a directory of its own."""
    packed = version(folder, number, files, TREE_LINKS)
    parts = (Part("top", str(folder / "opt/python3.9"), deep=True),)
    return replace(packed, parts=parts, scratch=str(folder / "opt/python3.9.hostwright-new"))


def tree(folder: Path) -> dict[str, str]:
    """Every file and link below a folder, with its text or target."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file())
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_text() for path in paths
    }


@pytest.mark.usefixtures("spread")
def test_a_deep_part_brings_everything_below_it(tmp_path: Path) -> None:
    apply(interpreter(tmp_path))
    assert tree(tmp_path / "opt/python3.9") == {**TREE, **TREE_LINKS}
    assert [path.name for path in (tmp_path / "opt").iterdir()] == ["python3.9"]


@pytest.mark.usefixtures("spread")
@pytest.mark.parametrize("lost", ["lib/python3.9/json", "share", "bin/python3.9", "bin"])
def test_what_is_lost_of_a_tree_is_put_back_alone(tmp_path: Path, lost: str) -> None:
    python = interpreter(tmp_path)
    apply(python)
    home = tmp_path / "opt/python3.9"
    stays = (home / "lib/python3.9/os.py").stat().st_ino
    shutil.rmtree(home / lost) if (home / lost).is_dir() else (home / lost).unlink()
    change = apply(python)
    assert lost in change.have
    assert "3.9.2" not in change.have
    assert tree(home) == {**TREE, **TREE_LINKS}
    assert (home / "lib/python3.9/os.py").stat().st_ino == stays


@pytest.mark.usefixtures("spread")
def test_the_next_version_of_a_tree_replaces_it_and_leaves_what_others_put_there(tmp_path: Path) -> None:
    apply(interpreter(tmp_path))
    home = tmp_path / "opt/python3.9"
    for name in ("lib/python3.9/__pycache__/os.cpython-39.pyc", "lib/site/theirs.py"):
        (home / name).parent.mkdir()
        (home / name).write_text("theirs")
    newer = {"bin/python3.9": "ELF 2", "lib/python3.9/os.py": "OS"}  # the same size and time as the one before
    assert apply(interpreter(tmp_path, "3.9.19", newer)).have == "3.9.2"
    assert tree(home) == {**newer, **TREE_LINKS, "lib/site/theirs.py": "theirs"}


@pytest.mark.usefixtures("spread")
def test_a_tree_that_is_not_there_any_more_is_placed_anew_however_many_files_it_had(tmp_path: Path) -> None:
    """The list of what is lost is longer than an answer."""
    many = {f"lib/{'x' * 60}/{number}.py": "x" for number in range(900)}
    python = interpreter(tmp_path, files=many)
    apply(python)
    shutil.rmtree(tmp_path / "opt")
    (probe,) = python.probes()
    status, text = ask(probe.script)
    assert len(text) > probe.cap_bytes
    change = python.plan(Facts({probe: Answer(status, text[: probe.cap_bytes], truncated=True)}))
    assert change is not None
    assert run(change.steps[0].script).returncode == 0
    assert tree(tmp_path / "opt/python3.9") == {**many, **TREE_LINKS}


def test_strays_are_set_aside_and_never_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "SET_ASIDE", str(tmp_path / "aside"))
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    other.mkdir()
    for path in (
        home / "libx.so.8",
        home / "libx.so.8.1",
        home / "libx.so.8.2",
        other / "libx.so.8",
        other / "liby.so.8",
    ):
        path.write_text(path.name)
    bin_ = tmp_path / "bin"
    program(bin_, "dpkg-query", "exit 1")
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    strays = NoStrayFiles("libx.so.8*", str(home), ("*.so.8", "*.so.8.1"), (str(other), "/nowhere"), "two of them")
    monkeypatch.setattr(archives, "LDCONFIG", "true")
    change = apply(strays)
    assert set(change.have.split(", ")) == {str(home / "libx.so.8.2"), str(other / "libx.so.8")}
    assert [step.lock for step in change.steps] == ["dpkg"], "dpkg's triggers write the loader's cache too"
    assert (tmp_path / f"aside{other}/libx.so.8").read_text() == "libx.so.8"
    assert sorted(path.name for path in home.iterdir()) == ["libx.so.8", "libx.so.8.1"]


def test_what_a_package_owns_is_no_stray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libx.so.8").touch()
    program(tmp_path / "bin", "dpkg-query", "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert plan(NoStrayFiles("libx.so.8*", "/nowhere", (), (str(tmp_path),), "two of them")) is None


PIN = Artifact(name="pin", file="cuda.pin", sha256="b" * 64)


def test_a_delivered_file_is_compared_by_its_sum() -> None:
    right = {"stat -c": "regular file|644|root:root\n", "sha256sum": f"{'b' * 64}  -\n"}
    delivered = Delivered("/etc/apt/preferences.d/cuda", PIN)
    assert changes_of(delivered, right) == ()
    (change,) = changes_of(delivered, {**right, "sha256sum": f"{'c' * 64}  -\n"})
    assert (change.have, change.artifacts) == ("other text", ("pin",))
    (change,) = changes_of(delivered)
    assert change.have == "absent"


def test_unpinned_artifact_never_counts_as_unchanged() -> None:
    unpinned = Delivered("/a", PIN.model_copy(update={"sha256": None}))
    assert len(changes_of(unpinned, {"stat -c": "regular file|644|root:root\n", "sha256sum": "\n"})) == 1
