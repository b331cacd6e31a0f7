"""Files, links and directories taken away, by the commands themselves in a real /bin/sh on a tree of our own."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.canonical import canonical
from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.plan.state_identity import identity_of
from hostwright.resources.conditions import Answers, Script, When
from hostwright.resources.files.files import Absent, Directory, File, Link
from hostwright.resources.files.paths_gone import DirectoryGone, Original, as_file, as_link
from tests.unit.resources.test_resources_files import CONTENTS, NAMES
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import OWNER, ask, program, run

USER, GROUP = OWNER.split(":")


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Every path below ``root`` with kind, mode, time of change (not of directories) and what it holds."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(root.rglob("*")):
        stat, name = path.lstat(), str(path.relative_to(root))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("directory", stat.st_mode)
        else:
            found[name] = ("file", stat.st_mode, stat.st_mtime_ns, path.read_bytes())
    return found


@dataclass
class Place:
    """A tree that stands for a host, and beside it what Hostwright keeps there."""

    base: Path
    recorded: bool = True
    root: Path = field(init=False)
    origin: Path = field(init=False)

    def __post_init__(self) -> None:
        self.root, self.origin = self.base / "root", self.base / "origin"
        self.root.mkdir(exist_ok=True)
        if self.recorded:
            self.origin.mkdir(mode=0o700, exist_ok=True)
            (self.origin / "packages").write_text("")

    def plan(self, resource: Resource) -> Change | None:
        replies = {probe: Answer(*ask(probe.script, origin=self.origin)) for probe in resource.probes()}
        return resource.plan(Facts(replies))

    def apply(self, resource: Resource, path: Path | None = None) -> Change:
        change = self.plan(resource)
        assert change is not None, resource
        for step in change.steps:
            done = run(step.script, origin=self.origin, path=path)
            assert done.returncode == 0, done.stderr
        return change

    def take_away(self, resource: Resource) -> list[Change]:
        """All that removal plans, applied, until nothing is left to do."""
        changes = []
        for _ in range(3):
            changes += [self.apply(state) for state in resource.removal() if self.plan(state) is not None]
        assert [self.plan(state) for state in resource.removal()] == [None] * len(resource.removal())
        return changes

    def file(self, name: str, content: str = "ours\n", *, then: tuple[str, ...] = ()) -> File:
        return File(str(self.root / name), content, owner=OWNER, then=then)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_new_file_goes_with_its_new_directories(place: Place) -> None:
    (place.root / "etc").mkdir()
    before = tree(place.root)
    file = place.file("etc/a b/c/it's")
    place.apply(file)
    (change,) = place.take_away(file)
    assert (change.have, change.want) == ("ours", "as before: absent")
    assert "-ours" in change.diff
    assert tree(place.root) == before
    assert not [path for path in place.origin.rglob("*") if path.suffix in {".written", ".kept", ".made"}]


def test_a_directory_with_something_of_others_stays(place: Place) -> None:
    first, second = place.file("made/a"), place.file("made/b")
    place.apply(first)
    place.apply(second)
    (place.root / "made/theirs").touch()
    place.take_away(first)
    place.take_away(second)
    assert list(tree(place.root)) == ["made", "made/theirs"]


def test_directories_go_whichever_file_goes_last(place: Place) -> None:
    first, second = place.file("made/a"), place.file("made/deep/b")
    place.apply(first)
    place.apply(second)
    place.take_away(first)
    place.take_away(second)
    assert tree(place.root) == {}


def test_a_file_that_was_there_is_back_with_mode_and_time(place: Place) -> None:
    path = place.root / "a"
    path.write_text("theirs\n")
    path.chmod(0o604)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    before = tree(place.root)
    place.apply(place.file("a"))
    place.apply(place.file("a", "ours, the next edition\n"))
    (change,) = place.take_away(place.file("a"))
    assert change.want == "as before: the former file"
    assert "-ours, the next edition" in change.diff
    assert "+theirs" in change.diff
    assert tree(place.root) == before


def test_a_file_in_the_place_of_a_link_gives_the_link_back(place: Place) -> None:
    (place.root / "a").symlink_to("/nowhere")
    place.apply(place.file("a"))
    place.take_away(place.file("a"))
    assert tree(place.root) == {"a": ("link", "/nowhere")}


def test_what_was_never_written_stays(place: Place) -> None:
    (place.root / "hostwright").write_text("ours\n")
    file = place.file("hostwright")
    assert place.take_away(file) == []
    assert list(tree(place.root)) == ["hostwright"]


@pytest.mark.parametrize(
    ("name", "content", "stays"), [("a", "ours\n", False), ("a", "theirs\n", True), ("x-hostwright", "changed", False)]
)
def test_without_a_record_only_what_is_ours_beyond_doubt_goes(
    tmp_path: Path, name: str, content: str, stays: bool
) -> None:
    place = Place(tmp_path, recorded=False)
    (place.root / name).write_text(content)
    place.take_away(place.file(name))
    assert (place.root / name).exists() == stays


def test_without_a_record_present_files_are_not_originals(tmp_path: Path) -> None:
    place = Place(tmp_path, recorded=False)
    (place.root / "a").write_text("ours, of an earlier version\n")
    place.apply(place.file("a"))
    place.take_away(place.file("a"))
    assert tree(place.root) == {}


def test_what_came_after_ours_went_is_not_ours(place: Place) -> None:
    file = place.file("a")
    place.apply(file)
    place.take_away(file)
    (place.root / "a").write_text("theirs\n")
    assert place.take_away(file) == []
    place.apply(file)
    place.take_away(file)
    assert (place.root / "a").read_text() == "theirs\n"


def test_a_cut_before_the_host_took_notice_is_made_up_for(place: Place) -> None:
    went = place.base / "went"
    place.apply(place.file("a"))
    change = place.plan(Original(str(place.root / "a"), ("false",)))
    assert change is not None
    assert run(change.steps[0].script, origin=place.origin).returncode != 0
    place.take_away(place.file("a", then=(f"touch {went}",)))
    assert went.exists()


def test_leftovers_of_cut_writes_go(place: Place) -> None:
    place.apply(place.file("a"))
    for name in (".a.hostwright-new", "a.hostwright-new", "a.hostwright-backup"):
        (place.root / name).write_text("half")
    place.take_away(place.file("a"))
    assert tree(place.root) == {}


def test_a_file_of_a_package_that_came_later_is_not_kept(place: Place) -> None:
    (place.root / "list").write_text("the vendor's\n")
    program(place.base / "bin", "dpkg-query", 'echo "cuda-repo: $3"')
    place.apply(place.file("list"), path=place.base / "bin")
    place.take_away(place.file("list"))
    assert tree(place.root) == {}


def test_a_file_of_a_package_from_before_is_kept(place: Place) -> None:
    (place.origin / "packages").write_text("base-files\t12\tii \n")
    (place.root / "list").write_text("the system's\n")
    program(place.base / "bin", "dpkg-query", 'echo "base-files, other: $3"')
    place.apply(place.file("list"), path=place.base / "bin")
    place.take_away(place.file("list"))
    assert (place.root / "list").read_text() == "the system's\n"


def look(words: str) -> Change | None:
    """What is planned for a file of which the host says these words."""
    changes = changes_of(Original("/etc/a"), {"echo owned": words.replace(" ", "\n")})
    return changes[0] if changes else None


def test_what_a_later_package_owns_is_left_to_it() -> None:
    change = look("record written there owned")
    assert change is not None
    assert (change.have, change.want) == ("another's", "as before: as it is")
    assert "rm -f -- /etc/a\n" not in change.steps[0].script
    assert look("there owned") is None
    assert look("record written other") is not None


def test_a_link_goes_and_what_was_moved_aside_comes_back(place: Place) -> None:
    (place.root / "a").mkdir()
    (place.root / "a/kept").touch()
    before = tree(place.root)
    link = Link(str(place.root / "a"), "/there")
    place.apply(link)
    (change,) = place.take_away(link)
    assert change.want == "as before: the file or directory that was moved aside"
    assert tree(place.root) == before


def test_a_packages_program_that_was_moved_aside_for_a_link_comes_back(place: Place) -> None:
    """The distribution's nvcc, with its package still there: dpkg knows the path, whoever lies there."""
    (place.root / "nvcc").write_text("the distribution's")
    before = tree(place.root)
    link = Link(str(place.root / "nvcc"), "/ours")
    place.apply(link)
    (state,) = link.removal()
    owned = {probe: probe.script.replace("dpkg-query -S", "echo") for probe in state.probes()}
    replies = {probe: Answer(*ask(script, origin=place.origin)) for probe, script in owned.items()}
    change = state.plan(Facts(replies))
    assert change is not None
    assert change.want == "as before: the file or directory that was moved aside"
    assert run(change.steps[0].script, origin=place.origin).returncode == 0
    assert tree(place.root) == before


def test_two_editions_of_one_path_go_in_one_plan(place: Place) -> None:
    """Those of two stacks: both are planned before either is carried out, and the second finds nothing left to do."""
    (place.root / "a").write_text("theirs\n")
    (place.root / "b").mkdir()
    before = tree(place.root)
    editions = [place.file("a", text) for text in ("ours\n", "ours, of the former stack\n")]
    links = [Link(str(place.root / "b"), target) for target in ("/ours", "/ours")]
    for resource in (*reversed(editions), links[0]):
        place.apply(resource)
    changes = [place.plan(state) for one in (*editions, *links) for state in one.removal()]
    for change in changes:
        assert change is not None
        done = run(change.steps[0].script, origin=place.origin)
        assert done.returncode == 0, done.stderr
    assert tree(place.root) == before


def test_the_oldest_of_what_was_moved_aside_comes_back(place: Place) -> None:
    link = Link(str(place.root / "a"), "/there")
    for name in ("first", "second"):
        (place.root / "a").unlink(missing_ok=True)
        (place.root / "a").write_text(name)
        place.apply(link)
    place.take_away(link)
    assert (place.root / "a").read_text() == "first"


def test_a_link_of_others_is_back_and_one_that_came_later_stays(place: Place) -> None:
    path = place.root / "a"
    path.symlink_to("/theirs")
    link = Link(str(path), "/ours")
    place.apply(link)
    place.take_away(link)
    assert str(path.readlink()) == "/theirs"
    place.apply(link)
    path.unlink()
    path.symlink_to("/later")
    place.take_away(link)
    assert str(path.readlink()) == "/later"


def test_a_link_that_was_right_before_stays(place: Place) -> None:
    (place.root / "a").symlink_to("/ours")
    assert place.take_away(Link(str(place.root / "a"), "/ours")) == []


def test_a_directory_goes_when_it_is_empty(place: Place) -> None:
    directory = Directory(str(place.root / "x/y"), owner=f"{USER}:{GROUP}")
    place.apply(directory)
    (place.root / "x/y/theirs").touch()
    assert place.take_away(directory) == []
    (place.root / "x/y/theirs").unlink()
    place.take_away(directory)
    assert tree(place.root) == {}
    (place.root / "z").mkdir()
    assert place.plan(DirectoryGone(str(place.root / "z"))) is None


@settings(max_examples=25, deadline=None)
@given(name=NAMES, before=st.none() | CONTENTS, content=CONTENTS)
def test_removal_restores_what_was_there_for_any_name_and_text(name: str, before: str | None, content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        if before is not None:
            (place.root / name).write_text(before)
        was = tree(place.root)
        file = place.file(f"{name}" if before is not None else f"{name}/{name}", content)
        place.apply(file)
        place.take_away(file)
        assert tree(place.root) == was


@settings(max_examples=200, deadline=None)
@given(
    words=st.sets(
        st.sampled_from(
            ["record", "written", "there", "other", "ours", "kept", "same", "owned", "left", "aside", "empty"]
        )
    ),
    ours=st.sampled_from(["", as_file("x"), as_link("/x")]),
)
def test_what_is_somebody_elses_is_never_deleted(words: set[str], ours: str) -> None:
    elsewhere = ours.startswith("link") and "there" in words and "ours" not in words
    unwritten = "there" in words and "written" not in words and "record" in words
    changes = changes_of(Original("/etc/a", ours=ours), {"echo owned": "\n".join(words)})
    script = changes[0].steps[0].script.splitlines() if changes else []
    touched = [line for line in script if line == "rm -f -- /etc/a" or line.startswith(("mv -fT", "mv -T"))]
    owned = "owned" in words and not words >= {"ours", "aside"}  # our link, in the place of what was moved aside
    foreign = elsewhere or unwritten or "other" in words or owned
    assert not (touched and foreign and words & {"there", "other"})


def test_what_a_script_leaves_goes_with_it() -> None:
    script = Script("a", "b", Original("/a").probes()[0], "true", leaves=("/var/x",))
    assert script.removal() == (Absent("/var/x", "left by a"),)
    assert "/var/x" not in canonical(identity_of(script))
    assert When(Answers(script.probe), script).removal() == script.removal()
