"""Tests of passes: one run of a tool answers many probes, with the same answers as separate runs, in the real shell."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.observing import MOST_ROUNDS, ask
from hostwright.plan.probing import new_nonce, parse, programs
from hostwright.plan.probing.questions import passes_of
from hostwright.resources.files import passes
from hostwright.resources.files.paths import content_probe, instead_probe, stat_probe, there_probe
from hostwright.transport.root.rootshell import RootShell
from tests.unit.plan.test_observing import Talking
from tests.unit.support.forks import OF_A_LOOK, forks
from tests.unit.support.shell import program

HERE_S = 8  #: limit for all probes; a quarter of it is the limit for one probe


def as_one_user(probes: list[Probe]) -> list[Probe]:
    """Root privileges belong to the host, not to this test."""
    return [Probe(probe.script, cap_bytes=probe.cap_bytes, part=probe.part) for probe in probes]


def look(
    probes: list[Probe], *, alone: bool = False, path: Path | None = None, timeout_s: float = 180.0
) -> tuple[Facts, str]:
    """The answers and the whole output of this machine's shell. ``path`` has stand-ins for tools."""
    nonce = new_nonce()
    text, _ = programs(probes, nonce, timeout_s, alone=alone)
    env = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]}
    done = subprocess.run(["/bin/sh"], input=text.encode(), capture_output=True, check=False, env=env, timeout=60)
    return parse(probes, nonce, done.stdout, "gpu01", alone=alone), done.stdout.decode()


def asked_alone(probes: list[Probe], output: str) -> set[int]:
    """The numbers of the probes that ran separately."""
    numbers = {line.rpartition(" ")[2] for line in output.splitlines() if line.count(" ") == 2}
    return {int(number) for number in numbers if number.isdigit() and int(number) < len(probes)}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Every kind of file at a path."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("text\n")
    (tree / "empty").touch()
    (tree / "private").write_text("x")
    (tree / "private").chmod(0o600)
    (tree / "directory").mkdir(mode=0o751)
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to("file")
    (tree / "to-directory").symlink_to(tree / "directory")
    (tree / "dangling").symlink_to("/no such place")
    (tree / "loop").symlink_to("loop")
    (tree / "odd").symlink_to("it's \\ odd")
    (tree / "name with space").write_text("x")
    (tree / "it's").symlink_to("file")
    return tree


NAMES = (
    "file", "empty", "private", "directory", "pipe", "link", "to-directory", "dangling", "loop", "odd",
    "name with space", "it's", "nothing", "file/below",
)  # fmt: skip
KINDS: dict[str, Callable[[str], Probe]] = {
    "stat": stat_probe,
    "link": instead_probe,
    "there": there_probe,
    "filled": lambda path: Probe(sh("test -s %s", path), part=passes.filled(path)),
    "directory": lambda path: Probe(sh("test -d %s", path), part=passes.directory(path)),
    "link without": lambda path: Probe(
        sh("[ -L %s ] && [ ! -e %s ]", path, f"{path}.written"), part=passes.link_without(path, f"{path}.written")
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_at_a_path_is_the_same_in_a_pass(kind: str, tree: Path) -> None:
    for name in ("link", "dangling"):
        (tree / f"{name}.written").symlink_to("nowhere" if name == "link" else "file")
    probes = as_one_user([KINDS[kind](str(tree / name)) for name in NAMES])
    alone, _ = look(probes, alone=True)
    together, output = look(probes)
    assert together.items() <= alone.items()
    left = {probes.index(probe) for probe in alone.keys() - together.keys()}
    plain = {NAMES.index(name) for name in ("file", "empty", "private", "directory", "pipe", "nothing", "file/below")}
    assert not left & plain, "these are told from one stat"
    assert asked_alone(probes, output) & set(range(len(NAMES))) == {NAMES.index("name with space"), NAMES.index("it's")}
    assert ask(RootShell(Talking()), probes) == alone  # type: ignore[arg-type]


def test_files_are_compared_by_one_sum_and_read_where_they_differ(tree: Path) -> None:
    wanted = {
        "file": "text\n",
        "private": "y",
        "empty": "not empty",
        "nothing": "x",
        "link": "text\n",
        "directory": "x",
    }
    probes = as_one_user([content_probe(str(tree / name), text) for name, text in wanted.items()])
    together, output = look(probes)
    assert together == look(probes, alone=True)[0]
    assert together[probes[0]] == Answer(0, "text\n")
    assert asked_alone(probes, output) == {1, 2, 3, 5}


def test_a_text_that_nothing_is_known_of_is_read() -> None:
    assert content_probe("/etc/motd").part is None
    assert content_probe("/etc/motd", "a\0b").part is None
    assert content_probe("/etc/motd", "é").part is not None


def test_a_pass_costs_one_process_however_many_probes_are_its_parts(tree: Path) -> None:
    few, many = (as_one_user([stat_probe(str(tree / f"file{number}")) for number in range(count)]) for count in (2, 60))
    for probes in few, many:
        assert forks(programs(probes, new_nonce())[0]) - 1 in OF_A_LOOK
    for number in range(60):
        (tree / f"file{number}").write_text(f"{number}\n")
    texts = as_one_user([content_probe(str(tree / f"file{number}"), f"{number}\n") for number in range(40)])
    of_texts = forks(programs(texts, new_nonce())[0])
    assert of_texts <= 2 + max(OF_A_LOOK), "a here-document of more than a page has a writer"


BROKEN = {
    "missing": None,
    "failing": "exit 126",
    "silent": "exit 0",
    "silent, with the status of a file that is gone": "exit 1",
    "of another kind": "echo usage: stat FILE; exit 1",
    "telling more": '/usr/bin/stat "$@"; echo /etc/shadow; echo a; echo b; echo c',
    "telling less": '/usr/bin/stat "$@" | head -n -1',
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_tool_that_does_not_work_as_known_leaves_each_probe_to_itself(how: str, tree: Path) -> None:
    """The tool works only with the arguments of a single probe: with a format of its own."""
    text = BROKEN[how]
    bin_ = tree / "bin"
    own = 'case $2 in "%F|%a|%U:%G") exec /usr/bin/stat "$@" ;; esac\n'
    program(bin_, "stat", own + (text if text is not None else "exit 127"))
    probes = as_one_user([stat_probe(str(tree / name)) for name in ("file", "directory", "nothing")])
    facts, output = look(probes, path=bin_)
    if asked_alone(probes, output):
        assert facts == look(probes, alone=True)[0]
    else:
        assert facts == {}, "they are asked in another round"


def test_sums_that_cannot_be_told_are_no_equality(tree: Path) -> None:
    program(tree / "bin", "sha256sum", "echo 'no properly formatted checksum lines found' >&2; exit 1")
    probes = as_one_user([content_probe(str(tree / name), "text\n") for name in ("file", "private")])
    assert look(probes, path=tree / "bin")[0] == {}


def test_probes_of_a_pass_that_cannot_be_read_are_asked_again_once(tree: Path) -> None:
    probes = as_one_user([instead_probe(str(tree / name)) for name in ("odd", "link", "directory")])
    session = Talking()
    facts = ask(RootShell(session), probes)  # type: ignore[arg-type]
    assert facts[probes[0]] == Answer(0, "it's \\ odd\n")
    assert len(session.programs) == 2 < MOST_ROUNDS
    assert b"odd" in session.programs[1] and b"to-directory" not in session.programs[1]


def test_a_pass_that_hangs_is_ended_and_its_probes_are_asked_there_and_then(tree: Path) -> None:
    """For example, a mount that does not respond blocks every access to one of its paths."""
    program(
        tree / "bin",
        "stat",
        f'for word; do case $word in {tree}/pipe) sleep 4321;; esac; done; exec /usr/bin/stat "$@"',
    )
    probes = as_one_user([stat_probe(str(tree / name)) for name in ("file", "pipe", "directory")])
    after = Probe("echo after")
    facts, output = look([*probes, after], path=tree / "bin", timeout_s=HERE_S)
    assert asked_alone(probes, output) == {0, 1, 2}
    assert set(facts.late) == {probes[1]}
    assert facts[probes[0]].text.startswith("regular file|")
    assert facts[probes[2]].text.startswith("directory|")
    assert facts[after] == Answer(0, "after\n")


def test_probes_of_two_users_are_two_passes_and_a_single_one_is_none() -> None:
    mine, theirs = (Probe(f"test -d /{n}", part=passes.directory(f"/{n}")) for n in "ab"), [stat_probe("/c")] * 2
    (asked,) = passes_of((*mine, *dict.fromkeys(theirs)))
    assert (asked.root, asked.words) == (False, ("/a", "/b"))
    assert passes_of((stat_probe("/a"), Probe("echo"))) == ()


def test_a_part_is_no_part_of_what_a_probe_is() -> None:
    assert stat_probe("/a") == Probe("stat -c '%F|%a|%U:%G' -- /a", root=True)
    assert hash(stat_probe("/a")) == hash(Probe("stat -c '%F|%a|%U:%G' -- /a", root=True))
