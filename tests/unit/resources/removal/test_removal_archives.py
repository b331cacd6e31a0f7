"""What an archive left, taken away, and what was moved aside for it, put back: real archives, files and commands."""

from __future__ import annotations

import os
import posixpath
import shlex
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostwright.plan.model import Answer, Change, Facts, Resource
from hostwright.resources.files import archives, archives_gone
from hostwright.resources.files.archives import Delivered, NoStrayFiles
from hostwright.resources.files.archives_gone import ArchiveGone, SetBack
from hostwright.resources.files.aside import ASIDE, KEEP_ASIDE
from hostwright.stack.stack import Artifact
from hostwright.stack.store import hostcache
from tests.unit.resources.test_resources_archives import FILES, LINKS, interpreter, version
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask, program, run

Tree = dict[str, str]
LIB = "/usr/local/lib"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place that stands for a host: where records and what is moved aside go; dpkg owns nothing there."""
    for module in (archives, archives_gone):
        monkeypatch.setattr(module, "RECORDS", str(tmp_path / "records"))
        monkeypatch.setattr(module, "SET_ASIDE", str(tmp_path / "aside"))
        monkeypatch.setattr(module, "LDCONFIG", "true")
        monkeypatch.setattr(module, "KEEP_ASIDE", KEEP_ASIDE.replace(ASIDE, str(tmp_path / "kept")))
    monkeypatch.setattr(archives, "host_path", lambda one: hostcache.host_path(one, str(tmp_path / "cache")))
    programs = tmp_path / "bin"
    program(programs, "dpkg-query", "exit 1")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path


def plan(resource: Resource, host: Path) -> Change | None:
    answers = {probe: Answer(*ask(probe.script, origin=host / "origin")) for probe in resource.probes()}
    return resource.plan(Facts(answers))


def apply(resource: Resource, host: Path) -> Change | None:
    """Bring a state about, and look that it is there."""
    change = plan(resource, host)
    for step in change.steps if change else ():
        done = run(step.script, origin=host / "origin")
        assert done.returncode == 0, done.stderr
    assert plan(resource, host) is None
    return change


def remove(resource: Resource, host: Path) -> None:
    for state in resource.removal():
        apply(state, host)


def tree(host: Path) -> Tree:
    """What lies in the directories that others use too, and beside them."""
    ours = {"records", "aside", "cache", "bin", "origin", "kept"}
    return {
        str(path.relative_to(host)): str(path.readlink()) if path.is_symlink() else path.read_text()
        for path in sorted(host.rglob("*"))
        if path.relative_to(host).parts[0] not in ours and (path.is_symlink() or path.is_file())
    }


def test_only_recorded_files_and_their_new_directories_go(host: Path) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    (host / "inc").mkdir()
    (host / "inc/cuda.h").write_text("another's")
    apply(spread, host)
    (host / "inc/a.h.mine").write_text("came later")
    remove(spread, host)
    assert tree(host) == {"inc/cuda.h": "another's", "inc/a.h.mine": "came later"}
    assert not (host / "lib").exists()
    assert not (host / "records/x").exists()


def test_what_somebody_put_in_the_place_of_a_recorded_file_is_named_and_kept(host: Path) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    apply(spread, host)
    (host / "inc/a.h").write_text("patched")
    (host / "lib/libx.so.8").unlink()
    (host / "lib/libx.so.8").write_text("eight")  # the link's own bytes
    gone = spread.removal()[0]
    change = apply(gone, host)
    assert change is not None
    (warning,) = change.warnings
    assert f"{host}/inc/a.h" in warning
    (day,) = (host / "kept").iterdir()
    assert tree(day / str(host)[1:]) == {"inc/a.h": "patched"}
    assert tree(host) == {}


def test_a_tree_goes_with_its_directories_and_what_others_put_there_stays(host: Path) -> None:
    python = interpreter(host)
    apply(python, host)
    compiled = host / "opt/python3.9/lib/python3.9/__pycache__"
    compiled.mkdir()
    (compiled / "os.cpython-39.pyc").write_text("compiled")
    remove(python, host)
    assert not (host / "opt").exists(), "its directories, compiled modules and the parent that was made for it"
    apply(python, host)
    (host / "opt/python3.9/theirs").mkdir()
    (host / "opt/python3.9/theirs/notes").write_text("theirs")
    remove(python, host)
    assert tree(host) == {"opt/python3.9/theirs/notes": "theirs"}


def test_what_was_in_the_way_comes_back_as_it_was(host: Path) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    for folder in ("inc", "lib"):
        (host / folder).mkdir()
    (host / "inc/a.h").write_text("of a former one")
    (host / "inc/a.h").chmod(0o640)
    (host / "lib/libx.so").symlink_to("libx.so.7")
    (host / "lib/libx.so.7").write_text("seven")
    before = tree(host)
    apply(spread, host)
    assert (host / "lib/libx.so").readlink() == Path("libx.so.8")
    newer = version(host, "8.2", {"include/a.h": "2", "lib64/libx.so.8.2": "newer"}, {"lib64/libx.so": "libx.so.8.2"})
    apply(newer, host)
    remove(newer, host)
    assert tree(host) == before
    assert (host / "inc/a.h").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("flat", [False, True])
def test_a_copy_that_somebody_made_by_hand_comes_back_though_it_has_the_same_bytes(host: Path, *, flat: bool) -> None:
    """``cp cuda/lib64/libcudnn* …``, with -P or without, as articles say."""
    for folder in ("inc", "lib"):
        (host / folder).mkdir()
    (host / "inc/a.h").write_text("1")
    (host / "lib/libx.so.8.1").write_text("eight")
    for link, target in (("lib/libx.so.8", "libx.so.8.1"), ("lib/libx.so", "libx.so.8")):
        (host / link).write_text("eight") if flat else (host / link).symlink_to(target)
    os.utime(host / "inc/a.h", (1, 1))
    before = tree(host)
    spread = version(host, "8.1", FILES, LINKS)
    apply(spread, host)
    (host / "records/x").unlink()
    apply(spread, host)  # our own now, and not somebody's
    remove(spread, host)
    assert tree(host) == before
    assert (host / "inc/a.h").stat().st_mtime == 1
    assert not [path for path in (host / "aside").rglob("*") if not path.is_dir()]


def test_files_of_ours_without_a_record_are_not_taken_for_somebody_elses(host: Path) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    apply(spread, host)
    (host / "records/x").unlink()
    apply(spread, host)
    assert not (host / "aside").exists()
    remove(spread, host)
    assert tree(host) == {}


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.9])
def test_an_installation_that_was_cut_comes_out_clean(host: Path, share: float) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    change = plan(spread, host)
    assert change is not None
    script = change.steps[0].script
    whole = script.replace("sync\n", "sync\nexit 9\n", 1) if share > 0.8 else script
    lines = whole.splitlines()
    run("\n".join(lines[: int(len(lines) * share)]) if share < 0.8 else whole, origin=host / "origin")
    remove(spread, host)
    assert tree(host) == {}


def test_a_removal_that_was_cut_goes_on(host: Path) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    apply(spread, host)
    gone = spread.removal()[0]
    assert isinstance(gone, ArchiveGone)
    change = plan(gone, host)
    assert change is not None
    lines = change.steps[0].script.splitlines()
    run(lines[0], origin=host / "origin")  # the files went, the record did not
    assert plan(gone, host) is not None
    apply(gone, host)


def test_a_host_that_never_had_it_has_nothing_to_take_away(host: Path) -> None:
    spread = version(host, "8.1", FILES, LINKS)
    strays = NoStrayFiles("libx.so.8*", str(host / "lib"), ("*.so.8.1",), (str(host / "other"),), "two")
    assert [plan(state, host) for state in (*spread.removal(), *strays.removal())] == [None] * 5


def test_strays_come_back_the_oldest_of_a_name_and_never_over_something(host: Path) -> None:
    other = host / "other"
    other.mkdir()
    strays = NoStrayFiles("libx.so.8*", str(host / "lib"), (), (str(other),), "two")
    for text in ("first", "second"):
        (other / "libx.so.8").write_text(text)
        (other / f"libx.so.8.{text}").symlink_to("libx.so.8")
        apply(strays, host)
    (other / "libx.so.8.second").write_text("new")
    remove(strays, host)
    assert tree(host) == {
        "other/libx.so.8": "first",
        "other/libx.so.8.first": "libx.so.8",
        "other/libx.so.8.second": "new",
    }
    assert {path.name for path in (host / f"aside{other}").iterdir()} == {"libx.so.8", "libx.so.8.second"}


def test_a_name_that_was_not_free_stays_aside_and_plans_nothing(host: Path) -> None:
    aside = host / f"aside{host}/lib"
    aside.mkdir(parents=True)
    (aside / "libx.so.8").write_text("old")
    (host / "lib").mkdir()
    (host / "lib/libx.so.8").symlink_to("into nothing")
    assert plan(SetBack(str(host / "lib")), host) is None


@given(st.text(max_size=40) | st.from_regex(r"[a./~0-9\n\0']+", fullmatch=True))
@example(";")
def test_names_of_a_host_are_data(text: str) -> None:
    """Whatever a host answers: a file comes back into its own directory, or nothing is planned."""
    for change in changes_of(SetBack("/usr/local/lib"), {"find": text}):
        lexer = shlex.shlex(change.steps[0].script, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        named = [word for word in lexer if word.startswith("/")]
        assert all(posixpath.normpath(path) == path for path in named)
        folders = {path.rpartition("/")[0] for path in named if path != archives.LDCONFIG}
        assert folders <= {"/usr/local", LIB, f"{archives.SET_ASIDE}{LIB}"}


@given(st.text(max_size=60) | st.from_regex(r"(file|mark)=.*", fullmatch=True))
def test_removal_script_contains_no_host_output(text: str) -> None:
    gone = ArchiveGone("cudnn", (LIB,), "/scratch")
    scripts = {
        step.script
        for one in (text, "mark=x")
        for change in changes_of(gone, {"while read": one})
        for step in change.steps
    }
    assert len(scripts) == 1


def test_a_delivered_file_gives_way_to_what_was_there(host: Path) -> None:
    digest = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"  # of "foo"
    pin = Artifact(name="pin", file="cuda.pin", sha256=digest)
    cached = Path(hostcache.host_path(pin, str(host / "cache")))
    cached.parent.mkdir(parents=True)
    cached.write_text("foo")
    (host / "origin").mkdir()
    (host / "origin/packages").write_text("bash\t5.1\tii \n")
    target = host / "etc/preferences.d/cuda"
    target.parent.mkdir(parents=True)
    target.write_text("the site's own")
    delivered = Delivered(str(target), pin)
    change = plan(delivered, host)
    assert change is not None
    script = change.steps[0].script.replace("-o root -g root", "")
    assert run(script, origin=host / "origin").returncode == 0
    assert target.read_text() == "foo"
    (original,) = delivered.removal()
    for step in (plan(original, host) or change).steps:
        assert run(step.script, origin=host / "origin").returncode == 0
    assert target.read_text() == "the site's own"
