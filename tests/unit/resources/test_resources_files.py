"""Files, directories, links: what is planned as data, and what the commands do in a real /bin/sh."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.plan.model import Answer, Change, Facts, Refusal
from hostwright.resources.files.files import Absent, Directory, File, FixedPass, JsonMerged, Link, fixed_probe
from hostwright.resources.files.paths import few, write_script
from tests.unit.support.facts import changes_of
from tests.unit.support.mounts import in_namespace
from tests.unit.support.shell import OWNER, ask, program, run

MOTD = File("/etc/motd", "hello\n")
RIGHT = {"stat -c": "regular file|644|root:root\n", "cat --": "hello\n"}

#: every character that a file may hold but NUL; the ones that a shell would like to read are likely
CONTENTS = st.text(
    st.one_of(
        st.sampled_from("'\"$`\\\n\t %(){};&|<>*?~#!=ü\r"), st.characters(exclude_categories=["Cs"], min_codepoint=1)
    ),
    max_size=200,
)
#: the same for names: no slash, and 40 characters of 4 bytes leave room for the temporary name within 255 bytes
NAMES = CONTENTS.map(lambda text: text.replace("/", "_")[:40]).filter(lambda name: name not in {"", ".", ".."})
HOSTILE = [
    "$(touch pwned)",
    "`id`",
    "a b",
    "it's",
    '"',
    "-rf",
    "new\nline",
    "ünïcødé",
    "%s%d",
    "\\",
    "*",
    "~",
    "a;b",
    "#",
]


def one(changes: tuple[Change, ...]) -> Change:
    assert len(changes) == 1
    return changes[0]


def write(path: Path, content: str, *, check: str = "", backup: bool = False) -> int:
    return run(write_script(str(path), content, mode="640", owner=OWNER, check=check, backup=backup)).returncode


@settings(max_examples=60, deadline=None)
@given(name=NAMES, content=CONTENTS)
def test_any_name_and_any_text_reach_the_file_as_data(name: str, content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert write(Path(folder) / name, content) == 0
        assert {path.name for path in Path(folder).iterdir()} == {name}
        assert (Path(folder) / name).read_bytes().decode() == content


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_and_texts_are_neither_run_nor_changed(tmp_path: Path, text: str) -> None:
    assert write(tmp_path / text / text, text) == 0
    assert (tmp_path / text / text).read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == [text]


@settings(max_examples=30, deadline=None)
@given(name=NAMES, content=CONTENTS)
def test_a_file_written_is_found_as_written(name: str, content: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = File(f"{folder}/{name}", content, owner="root:root")
        write(Path(file.path), content)
        (_, stat), (status, text), (_, fixed) = (ask(probe.script) for probe in file.probes())
        assert not fixed
        assert stat.startswith(("regular file|640|", "regular empty file|640|"))
        assert (status, text) == (0, content)


def test_a_write_that_fails_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    """The place is a directory, which `mv` refuses as it does an immutable file."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert write(tmp_path / "a", "x") != 0
    assert write(tmp_path / "c", "x", check="false %s") != 0
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_that_cannot_be_replaced_is_refused_with_the_reason(tmp_path: Path) -> None:
    """chattr +i, chattr +a, a directory with +i, a mount point, a file system that is mounted read-only."""
    program(tmp_path / "bin", "lsattr", f"printf '%s\\n' '----i---------e------- {tmp_path}/held' "
            f"'-----a--------e------- {tmp_path}/log' '--------------e---I--- {tmp_path}/index' "
            f"'----i---------e------- {tmp_path}/folder'")  # fmt: skip
    names = ("held", "log", "index", "folder/new/file", "point", "link", "ro/there", "ro/new")
    paths = [str(tmp_path / name) for name in names]
    done = in_namespace(
        f"cd {tmp_path}; mkdir folder ro; touch held log index point; ln -s ro/there link; touch ro/there\n"
        f"mount --bind index point; mount --bind ro ro; mount -o remount,bind,ro ro\n{FixedPass().script(paths)}",
        PATH=f"{tmp_path}/bin:{os.environ['PATH']}",
    )
    assert done.returncode == 0, done.stderr
    found = FixedPass().found(paths, done.stdout)
    kinds = {Path(path).relative_to(tmp_path).as_posix(): line.split("\t")[:2] for path, line in found.items()}
    assert {path: (kind, Path(at).name) for path, (kind, at) in kinds.items()} == {
        "held": ("immutable", "held"), "log": ("append", "log"), "folder/new/file": ("immutable", "folder"),
        "point": ("mounted", "point"), "ro/there": ("read-only", "there"), "ro/new": ("read-only", "ro"),
    }  # fmt: skip
    answers = {fixed_probe(MOTD.path).script: "immutable\t/etc/motd\t/etc/motd\n"}
    merged = JsonMerged("/etc/motd", '{"a": 1}')
    for state in (MOTD, merged, Link("/etc/motd", "/b"), Absent("/etc/motd")):
        (refused,) = changes_of(state, {"test -e": "", **answers})
        assert isinstance(refused, Refusal)
        assert refused.sentence == (
            "/etc/motd cannot be replaced: it is immutable (lsattr shows i); to allow the change, run chattr -i "
            "/etc/motd, then provision again"
        )
    assert changes_of(MOTD, {**RIGHT, **answers}) == ()


def test_a_file_gets_its_mode(tmp_path: Path) -> None:
    write(tmp_path / "a", "x")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_text_that_its_check_refuses_never_gets_the_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    assert write(tmp_path / "a", "new", check="grep -q old %s") != 0
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_cut_write_is_replaced_by_the_next(tmp_path: Path) -> None:
    (tmp_path / ".a.hostwright-new").write_text("half of")
    assert write(tmp_path / "a", "whole") == 0
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "whole"}


def test_a_backup_keeps_the_text_before(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    assert write(tmp_path / "a", "new", backup=True) == 0
    assert (tmp_path / "a.hostwright-backup").read_text() == "old"


def test_a_file_as_desired_plans_nothing() -> None:
    assert changes_of(MOTD, RIGHT) == ()
    empty = {"stat -c": "regular empty file|644|root:root\n", "cat --": ""}
    assert changes_of(File("/etc/motd", ""), empty) == ()


def test_a_missing_file_is_planned_with_its_text() -> None:
    change = one(changes_of(MOTD))
    assert (change.what, change.have, change.want) == ("file /etc/motd", "absent", "644 root:root")
    assert "+hello" in change.diff


@pytest.mark.parametrize(
    "stat", ["regular file|600|root:root", "regular file|644|admin:admin", "symbolic link|777|root:root"]
)
def test_mode_owner_and_kind_count(stat: str) -> None:
    change = one(changes_of(MOTD, {**RIGHT, "stat -c": stat}))
    assert change.have == stat.replace("|", " ")
    assert change.diff == ""


def test_a_cut_answer_is_never_taken_for_the_same_text() -> None:
    cut = Answer(0, "hello\n", truncated=True)
    assert one(changes_of(MOTD, {**RIGHT, "cat --": cut})).have == "other text"


def test_the_diff_shows_a_missing_line_end() -> None:
    change = one(changes_of(MOTD, {**RIGHT, "cat --": "hello"}))
    assert "\\ No newline at end of file" in change.diff


def test_what_a_file_needs_to_have_effect_runs_after_it() -> None:
    file = File("/etc/systemd/system/a.service", "x", then=("systemctl daemon-reload",))
    assert one(changes_of(file)).steps[0].script.endswith("systemctl daemon-reload")


def test_a_directory_is_made_with_mode_and_owner() -> None:
    directory = Directory("/srv/a b", "750", "admin")
    assert changes_of(Directory("/srv"), {"stat -c": "directory|755|root:root\n"}) == ()
    assert one(changes_of(directory)).steps[0].script.endswith("\ninstall -d -m 750 -o admin -g admin -- '/srv/a b'")


def test_a_link_as_desired_plans_nothing() -> None:
    assert changes_of(Link("/a", "/b"), {"readlink": "/b\n"}) == ()


@pytest.mark.parametrize(
    ("make", "have", "moved"),
    [
        (lambda path: None, "absent", ""),
        (lambda path: path.symlink_to("/c d"), "/c d", ""),
        (lambda path: path.mkdir(), "a directory", "the directory"),  # ansible/ansible#7254: force would delete it
        (lambda path: path.write_text("mine"), "a file", "the file"),
    ],
)
def test_a_link_says_what_is_in_its_place_and_that_it_is_moved_aside(
    tmp_path: Path, make: Callable[[Path], object], have: str, moved: str
) -> None:
    link = Link(str(tmp_path / "link"), "/b")
    make(tmp_path / "link")
    change = one((link.plan(Facts({probe: Answer(*ask(probe.script)) for probe in link.probes()})),))
    assert change.have == have
    aside = f"{moved} is moved to {link.path}.before-hostwright.TIME, and is moved back on removal"
    assert change.warnings == ((aside,) if moved else ())


def test_a_link_replaces_a_link_and_moves_anything_else_aside(tmp_path: Path) -> None:
    place = tmp_path / "it's"
    place.mkdir()
    (place / "kept").touch()
    script = one(changes_of(Link(str(place), "/there"))).steps[0].script
    assert run(script).returncode == 0
    assert str(place.readlink()) == "/there"
    assert [path.name for path in tmp_path.glob("*.before-hostwright.*/*")] == ["kept"]
    assert run(script).returncode == 0
    assert len(list(tmp_path.iterdir())) == 2


def test_what_must_be_absent_goes_with_its_reason() -> None:
    assert changes_of(Absent("/a")) == ()
    change = one(changes_of(Absent("/a", "stops the installer"), {"test -e": ""}))
    assert change.want == "absent (stops the installer)"
    assert change.steps[0].script == "rm -f -- /a"


WANTED = JsonMerged("/etc/docker/daemon.json", '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}')


def test_json_keys_of_others_stay() -> None:
    have = '{"runtimes": {"kata": {"path": "kata"}}, "log-driver": "journald"}'
    change = one(changes_of(WANTED, {"stat -c": "x", "cat --": have}))
    assert '+        "nvidia": {' in change.diff
    assert "kata" in change.steps[0].script
    assert "journald" in change.steps[0].script


def test_json_that_holds_the_keys_plans_nothing() -> None:
    have = json.dumps({"debug": True, **json.loads(WANTED.wanted)})
    assert changes_of(WANTED, {"stat -c": "x", "cat --": have}) == ()


@pytest.mark.parametrize("broken", ['{"a": ', "[]", "hello"])
def test_file_without_a_json_object_is_replaced_and_reported(broken: str) -> None:
    change = one(changes_of(WANTED, {"stat -c": "x", "cat --": broken}))
    assert change.have == "not valid JSON"
    assert ".hostwright-backup" in change.steps[0].script


@pytest.mark.parametrize(
    ("before", "after"), [(0o600, 0o600), (0o640, 0o640), (0o666, 0o644), (0o755, 0o644), (0, 0o644)]
)
def test_a_file_of_others_is_not_opened_to_those_whom_its_mode_keeps_out(
    tmp_path: Path, before: int, after: int
) -> None:
    """A daemon.json may hold a proxy's password. ``0`` stands for no file."""
    path, group = tmp_path / "daemon.json", os.getgid()
    if before:
        path.write_text('{"debug": true}')
        path.chmod(before)
        if os.getuid() == 0:
            group = 4
            os.chown(path, 0, group)
    script = write_script(str(path), "{}", mode="644", owner=OWNER, check="", backup=True, stricter=True)
    assert run(script).returncode == 0
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("{}", after)
    assert path.stat().st_gid == (group if before else os.getgid())


def test_merged_json_keeps_what_is_stricter() -> None:
    (merged,) = (one(changes_of(WANTED, {"stat -c": "x", "cat --": "{}"})).steps[0].script,)
    assert "chown --reference=/etc/docker/daemon.json" in merged


def test_a_json_file_too_large_to_read_is_refused() -> None:
    cut = Answer(0, "{}", truncated=True)
    assert isinstance(one(changes_of(WANTED, {"stat -c": "x", "cat --": cut})), Refusal)


def test_long_lists_are_shortened() -> None:
    assert few(["a", "b"]) == "a; b"
    assert few(["a", "b", "c", "d", "e"]) == "a; b; c and 2 more"
