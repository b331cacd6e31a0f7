"""The live table on a terminal: its text in examples, and properties of all tables."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply import events
from hostwright.apply.events import RESULTS
from hostwright.cli.live.rows import STANDINGS, elapsed
from hostwright.plan.model import Plan, RoleResult
from hostwright.plan.roles.layers import short_names
from tests.unit.cli.live.runs import LAYERS, Watched, at_work, ended, story

LONG = "Unpacking nothing-in-particular (470.182.03-0ubuntu1) over (470.161.03-0ubuntu1.20.04.1) ..."
FULL = "storage: the disk is full: 12 MB are free on /, and 4.1 GB are needed; free some and run it again"
#: difficult texts from hosts: control codes, wide characters, emoji sequences, many combining accents
EVIL = (
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "gone\r\ngpu02  as desired\u2028gpu03  as desired",
    "\u202eright to left\u2066",
    "表は壊れない" * 30,
    "👨\u200d👩\u200d👧\u200d👦 ❤\ufe0f 👍🏽 🇩🇪" * 12,
    "z" + "\u0335\u0321" * 400,
    "\t" * 50 + "x",
)


def columns(text: str) -> int:
    """Return the greatest width of a text on a terminal, drawn character by character."""
    zero = {"Mn", "Me", "Cf"}
    return sum(
        0 if unicodedata.category(char) in zero else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text
    )


@dataclass(frozen=True)
class Fleet:
    """Hosts with their result (or ``running``, ``waiting``), their texts, and their start times."""

    fates: tuple[str, ...]
    said: tuple[str, ...]
    name: str = "gpu{:04}"
    layers: tuple[str, ...] = LAYERS
    pace: int = 1

    def begun_s(self, number: int) -> float:
        return number * self.pace % 997

    @property
    def names(self) -> list[str]:
        return [self.name.format(number) for number in range(len(self.fates))]

    def watched(self) -> Watched:
        watched = Watched(dict.fromkeys(self.names, self.layers))
        for number, (name, fate, said) in enumerate(zip(self.names, self.fates, self.said, strict=True)):
            if fate == "running":
                watched.tell(*at_work(name, said), at_s=self.begun_s(number))
            elif fate == "untouched":
                watched.tell(events.HostEnded(name, fate, said), at_s=self.begun_s(number))
            elif fate != "waiting":
                watched.tell(*ended(name, fate, said), at_s=self.begun_s(number))
        return watched.tell(at_s=1360.0)


def fleets() -> st.SearchStrategy[Fleet]:
    fate = st.sampled_from([*RESULTS, "running", "waiting"])
    said = st.one_of(st.sampled_from([LONG, FULL, *EVIL]), st.text(max_size=200))
    name = st.sampled_from(["g{:04}", "gpu-node-{:04}.hpc.example.org", "n{:04}." + "x" * 57, "計算機{:04}"])
    layers = st.sampled_from([(), LAYERS[:1], LAYERS, tuple(f"layer{number:02}" for number in range(20))])

    def made(pairs: list[tuple[str, str]], times: int, name: str, layers: tuple[str, ...]) -> Fleet:
        fates, told = zip(*(pairs * times), strict=True)
        return Fleet(fates, told, name, layers, pace=389)

    pairs = st.lists(st.tuples(fate, said), min_size=1, max_size=12)
    return st.builds(made, pairs, st.sampled_from([1, 1, 3, 25]), name, layers)


def hidden(lines: list[str]) -> int:
    """Return how many hosts the table reports as not shown."""
    return sum(int(found[1]) for line in lines if (found := re.match(r"… (\d+) more", line)))


def counted(lines: list[str]) -> dict[str, int]:
    """Return the counts in the first lines of the table, by word."""
    words = "|".join({*STANDINGS.values(), "running", "waiting"})
    top = " ".join(lines[:10]).partition(" hosts: ")[2]
    return {word: int(number) for number, word in re.findall(rf"(?:^|· |  )(\d+) ({words})\b", top)}


@settings(max_examples=300, deadline=None)
@given(fleets(), st.sampled_from([20, 40, 60, 80, 120, 200]), st.sampled_from([3, 10, 24, 60]))
def test_whatever_the_fleet_no_line_is_wider_no_picture_higher_and_no_name_cut(fleet: Fleet, width: int, height: int):
    lines = fleet.watched().picture(width, height)
    assert len(lines) < height
    assert max(map(columns, lines)) <= width
    assert all(unicodedata.category(char)[0] != "C" for line in lines for char in line)
    whole = sum(name in "".join(lines) for name in fleet.names)
    assert whole + hidden(lines) == len(fleet.names) or not whole + hidden(lines)  # or not even one fits


def test_every_result_of_a_run_is_counted():
    assert set(STANDINGS) == set(RESULTS)


@settings(max_examples=100, deadline=None)
@given(fleets(), st.sampled_from([60, 80, 120, 200]))
def test_the_first_line_counts_every_host_once(fleet: Fleet, width: int):
    lines = fleet.watched().picture(width)
    words = {"as desired": "done", "changed": "done", "ran": "done", "pending": "reboot pending"}
    expected = Counter(words.get(fate, fate) for fate in fleet.fates)
    assert counted(lines) == (expected if len(fleet.fates) > 1 else {})


@settings(max_examples=100, deadline=None)
@given(fleets(), st.sampled_from([80, 120, 200]), st.sampled_from([24, 60]))
def test_hosts_in_trouble_come_first_then_those_at_work_the_slowest_first(fleet: Fleet, width: int, height: int):
    text = "".join(fleet.watched().picture(width, height))
    group = {"failed": 0, "unreachable": 0, "stopped": 0, "running": 1}
    fate = dict(zip(fleet.names, fleet.fates, strict=True))
    shown = sorted((text.index(name), name) for name in fleet.names if name in text)
    begun = {name: fleet.begun_s(number) for number, name in enumerate(fleet.names) if fate[name] == "running"}
    order = [(group.get(fate[name], 2), begun.get(name, 0)) for _, name in shown]
    assert order == sorted(order)


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("hosts", [2, 10, 300])
def test_of_a_fleet_both_what_failed_and_what_is_slowest_is_on_the_screen(width: int, hosts: int):
    fates = [("failed", "running", "as desired", "running", "waiting")[number % 5] for number in range(hosts)]
    lines = Fleet(tuple(fates), (FULL,) * hosts, "gpu-node-{:03}.hpc.example.org").watched().picture(width)
    text = "\n".join(lines)
    assert "gpu-node-000.hpc.example.org" in text
    assert "gpu-node-001.hpc.example.org" in text
    assert "failed: storage: the disk" in text
    assert "storage 4/12: storage: " in text
    assert hidden(lines) == 0 if hosts < 300 else 275 < hidden(lines) < 300
    assert ("among them" in text) == (hosts == 300)


def two() -> Watched:
    """Return two hosts, one of which does not have the last layer."""
    first, second = "gpu-node-001.hpc.example.org", "gpu-node-002.hpc.example.org"
    watched = Watched({first: LAYERS, second: LAYERS[:-1]})
    watched.tell(*at_work(first, LONG), at_s=0).tell(*ended(second, "failed", FULL), at_s=60)
    return watched.tell(at_s=400)


def test_at_60_columns_what_a_host_does_stands_below_it():
    assert two().picture(60) == [
        "2 hosts: 1 failed · 1 running · 6 min",
        "host                          base net sto mon tf sel   time",
        "gpu-node-002.hpc.example.org  ·    ·   ·   ·   ·         0 s",
        "    failed: storage: the disk is full: 12 MB are free on /,…",
        "gpu-node-001.hpc.example.org  =    =   ●   =   =  =    6 min",
        "    storage 4/12: Unpacking nothing-in-particular (470.182.…",
    ]


def test_at_200_columns_all_stands_on_one_line():
    assert two().picture(200) == [
        "2 hosts: 1 failed · 1 running · 6 min",
        "host                          base net sto mon tf sel   time",
        f"gpu-node-002.hpc.example.org  ·    ·   ·   ·   ·         0 s  failed: {FULL}",
        f"gpu-node-001.hpc.example.org  =    =   ●   =   =  =    6 min  storage 4/12: {LONG}",
    ]


def test_a_host_s_clock_starts_with_its_work_and_stops_at_its_end():
    watched = Watched(dict.fromkeys(["gpu01", "gpu02", "gpu03"], ()))
    watched.tell(events.Waiting("gpu01", "a connection"), at_s=100).tell(*ended("gpu02", "changed"), at_s=170)
    watched.tell(events.HostEnded("gpu02", "changed"), at_s=190)
    assert watched.tell(at_s=190).picture(80) == [
        "3 hosts: 1 done · 1 running · 1 waiting · 3 min",
        "gpu01  90 s  waiting for a connection",
        "gpu03",
        "gpu02  20 s  changed",
    ]


def test_a_verb_that_touches_no_layer_shows_none():
    watched = Watched({"gpu01": LAYERS}).tell(events.Waiting("gpu01", "its BMC"))
    assert watched.picture(80) == ["gpu01  0 s  waiting for its BMC"]


def test_a_host_first_heard_of_while_the_run_lasts_has_a_line_and_is_counted():
    watched = Watched({"gpu01": ()}).tell(events.Note("gpu02", "hello"))
    assert watched.picture(80)[0].startswith("2 hosts: 1 running · 1 waiting")


def test_progress_is_seen_in_the_layer_s_mark_and_in_words():
    watched = Watched({"gpu01": LAYERS, "gpu02": LAYERS})
    told = list(story("gpu01"))
    drawn = "\n".join(watched.tell(*told[:6]).picture(120))
    assert "●" in drawn
    assert "storage 2/3: \N{REPLACEMENT CHARACTER}[1mUnpacking" in drawn
    drawn = "\n".join(watched.tell(*told[6:]).picture(120))
    assert "✓" in drawn
    assert "●" not in drawn
    failed = RoleResult("storage", 1, 1.0, ())
    assert "✗" in "\n".join(watched.tell(events.RoleFinished("gpu01", "storage", failed)).picture(120))


def test_states_are_told_apart_without_colours_and_none_is_pale_on_a_light_background():
    watched = Fleet((*RESULTS, "running", "waiting"), (FULL,) * (len(RESULTS) + 2)).watched()
    coloured = "\n".join(watched.picture(200, color_system="standard"))
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", coloured) for code in found.split(";")}
    assert {"31", "32"} <= codes  # colours are present
    assert codes.isdisjoint({"33", "37", "93", "97"})  # yellow and white
    plain = watched.picture(200, color_system="standard", no_color=True)
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", "\n".join(plain)) for code in found.split(";")}
    assert codes <= {"", "0", "1", "2"}
    shown = {re.sub(r"\x1b\[[0-9;]*m|gpu\d+|\d+ (s|min)", "", line) for line in plain[2:]}
    assert len(shown) == len(RESULTS) + 2


def test_short_headings_are_the_roles_own_or_made_of_their_names_and_never_the_same():
    assert short_names(LAYERS, {"tensors": "tf"}) == {
        "base": "base",
        "network": "net",
        "storage": "sto",
        "monitoring": "mon",
        "tensors": "tf",
        "selfcheck": "sel",
    }
    assert short_names(["networks", "network", "net"], {}) == {"networks": "new", "network": "neo", "net": "net"}
    assert short_names(["ab", "other"], {"other": "ab"}) == {"ab": "ab2", "other": "ab"}


@given(st.lists(st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True), unique=True, max_size=20), st.data())
def test_no_two_headings_are_the_same(names: list[str], data: st.DataObject):
    given_names = data.draw(st.dictionaries(st.sampled_from([*names, "x"]), st.sampled_from(["a", "tf", "ws", "net"])))
    found = short_names(names, given_names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)


def test_times_are_read_at_a_glance():
    assert [elapsed(seconds) for seconds in (0.4, 99.9, 100, 3599, 3600, 90061)] == [
        "0 s",
        "99 s",
        "1 min",
        "59 min",
        "1 h 0 min",
        "25 h 1 min",
    ]


def test_a_layer_of_which_a_check_failed_is_not_marked_as_desired() -> None:
    nothing = events.Observed("gpu01", Plan("gpu01", "tf"))
    failed = events.Explained("gpu01", "storage: Every disk answers.", "sda is silent")
    watched = Watched({"gpu01": LAYERS}).tell(
        nothing, failed, events.Explained("gpu01", "after the failure", "nothing")
    )
    assert [line.split()[1:7] for line in watched.picture(80)][1] == ["=", "=", "✗", "=", "=", "="]
