"""Every verb in a real terminal emulator: a picture of each, to be looked at, and what must be true of all of them."""

from __future__ import annotations

import html
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.apply.rollout.limits import MAX_PARALLEL
from lab.image import ensure_programs
from tests.lab.sshd import free_port, running
from tests.pictures.drawing import DARK, LIGHT, draw
from tests.pictures.hosts import GROUPS, KINDS, write_people, write_site
from tests.pictures.scenes import MISTAKES, SCENES, Scene
from tests.pictures.terminal import HEIGHT, Shot, Terminal, terminal
from tests.places import PROJECT
from tests.unit.roles.container.images.archives import packed, put, saved
from tests.unit.support.sshsite import NOBODY

FOLDER = PROJECT / "build/pictures"
PROGRAMS = {"sshd": "openssh-server", "tmux": "tmux"}
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
YES = {"HOSTWRIGHT_YES": "1"}
MOST_LINES = 400  #: of one picture: what is above is the same again
#: what stands in a line of its own that only the terminal wraps, so that it can be copied whole: commands, diffs
COPIED = re.compile(
    r"\s*((next|every step|console of \S+): )?(hostwright|ssh|ipmitool) | {8}[-+@ ]"
)  #: commands, diffs
#: what a program reads, or what is pasted into a file: only the terminal may wrap it
FOR_PROGRAMS = ("completion", "workspace.export", "vars")
#: verbs whose last screen says what it came to
ENDINGS = (
    "plan", "provision", "remove", "verify", "prove", "audit", "rebuild", "run", "doctor", "power", "lock", "unlock",
    "hosts", "trust",
)  # fmt: skip
VERDICT = re.compile(r"^(checks of )?\d+ hosts?\b", re.MULTILINE)
SGR = re.compile(r"\x1b\[([0-9;:]*)m")
CURSOR = re.compile(r"\x1b\[[0-9;?]*[A-HJKfhlsu]")
PALE = {33, 37, 93, 97, 43, 47, 103, 107}  #: yellow and white, which cannot be read on a light background
COLOURED = {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}


@pytest.fixture(scope="module")
def term(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal in a site of 315 hosts, whose pictures go to ``build/pictures``."""
    ensure_programs(PROGRAMS, path=PATH)
    folder = tmp_path_factory.mktemp("pictures")
    FOLDER.mkdir(parents=True, exist_ok=True)
    login = NOBODY if os.getuid() == 0 else ()
    with running(*login) as sshd:
        site = folder / "site"
        write_site(site, port=sshd.port, closed=free_port(), key=sshd.key, known_hosts=sshd.known_hosts)
        shutil.copytree(PROJECT / "tests/fixtures/serving/half-plus-two", site / "half-plus-two")
        put(site, packed(saved()), "tool.tar")
        with terminal(folder, site) as made:
            yield made
    files = sorted(file.name for file in FOLDER.glob("*.svg"))
    shown = "".join(f'<h2>{html.escape(name)}</h2><img src="{html.escape(name)}">\n' for name in files)
    (FOLDER / "index.html").write_text(f"<!doctype html><meta charset=utf-8>{shown}")


def keep(shot: Shot, name: str, *, theme: object = DARK) -> None:
    """Draw it, and write it down."""
    ansi = "\n".join(shot.ansi.split("\n")[-MOST_LINES:])
    (FOLDER / f"{name}.txt").write_text("\n".join(shot.lines) + "\n")
    (FOLDER / f"{name}.svg").write_text(draw(ansi, shot.width, rows=HEIGHT, theme=theme))  # type: ignore[arg-type]


def colours(ansi: str) -> set[int]:
    """The numbers of all colours among the sequences, but for those of 256 and more."""
    found = set[int]()
    for match in SGR.finditer(ansi):
        numbers = [int(number) for number in match[1].replace(":", ";").split(";") if number]
        while numbers:
            number = numbers.pop(0)
            if number in {38, 48} and numbers:
                del numbers[: 2 if numbers[0] == 5 else 4]
            found.add(number)
    return found & COLOURED


def shortened(lines: tuple[str, ...]) -> list[str]:
    """What looks like a host's name that was cut off."""
    words = [word for line in lines for word in re.findall(r"[\w.-]{3,}(?=…)", line)]
    return [word for word in words if any(name.startswith(word) for name in KINDS)]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_verb(term: Terminal, scene: Scene, width: int) -> None:
    write_people(term.folder / "site")
    shutil.rmtree(term.folder / "site/new-site", ignore_errors=True)
    shot = term.shown(scene.typed, width=width, env=YES)
    keep(shot, f"{scene.name}@{width}")
    text = "\n".join(shot.lines)
    assert "Traceback" not in text and "internal error" not in text
    if not scene.words.startswith(FOR_PROGRAMS):
        assert [line for line in shot.wrapped if not COPIED.match(line)] == []
    assert shortened(shot.lines) == []
    assert not re.search(r"\[[0-9;]+m|\x1b|\[/?(bold|red|dim)", text), "no codes are left in the text"
    assert colours(shot.ansi) & PALE == set()
    if scene.words in MISTAKES and not scene.group:
        assert shot.status == 2
    if scene.group and scene.words.split()[0] in ENDINGS and shot.status != 2 and not _refused(scene):
        assert VERDICT.search("\n".join(shot.screen)), "what it came to is on the last screen"


def _refused(scene: Scene) -> bool:
    """Whether one host of the group keeps the verb from all of them."""
    return scene.words == "rollback" and bool({"failed", "bare"} & {*GROUPS[scene.group].values()})


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize(
    ("verb", "counted"),
    [
        ("provision --batch 60", r"300 hosts: (?s:.*)failed · (?s:.*)60 running(?s:.*)waiting"),
        ("rebuild --batch 60", r"300 hosts: (?s:.*)failed · (?s:.*)60 running(?s:.*)waiting"),
        ("verify", rf"300 hosts: [^\n]*\b{MAX_PARALLEL} running(?s:.*)waiting"),
    ],
    ids=["provision", "rebuild", "verify"],
)
def test_a_fleet_at_work(term: Terminal, tmp_path: Path, verb: str, counted: str, width: int) -> None:
    go_on = tmp_path / "go-on"
    term.begin([*verb.split(), "--hosts", "@fleet"], width=width, env={**YES, "PICTURES_HOLD": str(go_on)})
    try:
        shot = term.until(lambda shot: re.search(counted, "\n".join(shot.screen)) is not None)
    finally:
        go_on.touch()
        ended = term.ended()
    for name, theme in (("dark", DARK), ("light", LIGHT)):
        keep(shot, f"fleet-at-work-{verb.split(maxsplit=1)[0]}-{name}@{width}", theme=theme)
    assert len(shot.screen) <= HEIGHT
    assert shot.wrapped == []
    assert re.search(r"… \d+ more", shot.screen[-1]), "the table fits the screen, and says what it leaves out"
    assert colours(ended.ansi) & PALE == set()
    assert ended.wrapped == [] or all(COPIED.match(line) for line in ended.wrapped)


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("provision --hosts @bare", "Go on with 3 hosts?"),
        ("remove --hosts @fleet", "Go on with 300 hosts?"),
        ("rebuild --hosts @bare", "Go on with 3 hosts?"),
        ("power off --hosts @long", "Go on with 3 hosts?"),
        ("workspace.down lab01 --name bob-lab", "Go on with 1 host?"),
        ("serve.down lab01 --name mnist", "Go on with 1 host?"),
    ],
)
@pytest.mark.parametrize("width", [80, 120])
def test_what_disturbs_is_asked_for_once(term: Terminal, words: str, question: str, width: int) -> None:
    write_people(term.folder / "site")
    term.begin(words.split(), width=width)
    shot = term.until(lambda shot: "Type yes" in "\n".join(shot.joined) or shot.status is not None)
    term.keys("no", "Enter")
    ended = term.ended()
    keep(ended, f"asked-{words.replace(' ', '-').replace('@', '')}@{width}")
    assert question in " ".join(" ".join(shot.screen).split())
    assert "nothing was changed" in " ".join(" ".join(ended.screen).split())
    assert [line for line in ended.wrapped if not COPIED.match(line) and "Type yes" not in line] == []


@pytest.mark.parametrize("verb", ["provision --batch 60", "rebuild --batch 60", "verify", "audit"])
def test_ctrl_c_ends_with_what_there_is(term: Terminal, tmp_path: Path, verb: str) -> None:
    held = {**YES, "PICTURES_HOLD": str(tmp_path / "go-on")}
    term.begin([*verb.split(), "--hosts", "@fleet"], width=80, env=held)
    try:
        term.until(lambda shot: re.search(r"running|probing.*/300", "\n".join(shot.screen)) is not None)
        term.keys("C-c")
        once = term.until(lambda shot: "Ctrl-C" in "\n".join(shot.joined) or "stopped" in "\n".join(shot.joined))
        keep(once, f"ctrl-c-once-{verb.split(maxsplit=1)[0]}@80")
        term.keys("C-c")
    finally:
        (tmp_path / "go-on").touch()
        ended = term.ended()
    keep(ended, f"ctrl-c-twice-{verb.split(maxsplit=1)[0]}@80")
    assert "Traceback" not in "\n".join(ended.lines)
    assert VERDICT.search("\n".join(ended.screen)) or "stopped; nothing was changed" in "\n".join(ended.screen)


@pytest.mark.parametrize("verb", ["plan", "provision", "verify", "audit", "doctor"])
def test_without_colours(term: Terminal, verb: str) -> None:
    shot = term.shown([verb, "--hosts", "@broken"], width=80, env={**YES, "NO_COLOR": "1"})
    keep(shot, f"{verb}-no-color@80")
    keep(term.shown([verb, "--hosts", "@broken"], width=80, env=YES), f"{verb}-light@80", theme=LIGHT)
    assert colours(shot.ansi) == set()
    assert "train02" in "\n".join(shot.screen)


@pytest.mark.parametrize("verb", ["plan", "provision", "verify", "audit", "doctor", "rebuild"])
def test_in_a_dumb_terminal_the_cursor_never_moves(term: Terminal, verb: str) -> None:
    sent = term.sent([verb, "--hosts", "@broken"], width=80, env={**YES, "TERM": "dumb"})
    keep(term.shot(), f"{verb}-dumb@80")
    assert "train02" in sent
    assert CURSOR.findall(sent) == []


@pytest.mark.parametrize("verb", ["plan", "provision", "verify", "audit", "doctor", "rebuild", "hosts", "lock --list"])
def test_in_a_pipe_no_line_is_wrapped(term: Terminal, tmp_path: Path, verb: str) -> None:
    term.shown([*verb.split(), "--hosts", "@long"], width=60, env=YES, into=tmp_path / "out")
    (FOLDER / f"piped-{verb.split(maxsplit=1)[0]}.txt").write_text((tmp_path / "out").read_text())
    lines = (tmp_path / "out").read_text().splitlines()
    assert "\x1b" not in "".join(lines)
    assert max(map(len, lines)) > 60
    if verb in {"provision", "verify", "rebuild"}:
        told = [line for line in lines if re.match(r"\d\d:\d\d:\d\d  ", line)]
        assert re.fullmatch(r"\S+  run \S+: 3 hosts", told[0])
        assert {line.split()[1] for line in told[1:]} <= {*KINDS}
