"""Output to the terminal: plans with diffs, and never a host's own control characters."""

import io
import re
import sys
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hostwright.apply.host.outcome import Outcome
from hostwright.cli.console import Hanging, make_console
from hostwright.cli.views.changing.outcomes import summary
from hostwright.cli.views.changing.plans import folded_plans, show_plan
from hostwright.cli.views.shared import show_error, show_errors
from hostwright.common.errors import FailedStep, HostError, Locked, ScriptFailed, SeveralFailed, StepFailed, Unreachable
from hostwright.common.text import one_line, printable
from hostwright.inventory.patterns import fold
from hostwright.plan.model import Change, Deferred, Plan, Planned, Refusal, RolePlan, RoleResult, Step, StepResult
from hostwright.plan.planning import HostPlan


def shown(*things) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=120, color_system=None)
    for thing in things:
        console.print(thing)
    return stream.getvalue()


CHANGE = Change("file /etc/x", "other text", "644 root root", (Step("true"),), diff="-old\n+new\n")


@given(st.text())
def test_no_control_or_format_character_is_printed(text):
    assert all(char in "\n\t" or unicodedata.category(char)[0] != "C" for char in printable(text))


def shown_plan(*planned: Planned, **beside: tuple[str, ...]) -> str:
    return shown(show_plan(HostPlan(Plan("gpu01", "tf", (RolePlan("base", (), planned),)), **beside)))


def test_plan_shows_the_hosts_users_and_locks():
    text = shown_plan(
        Change("driver", "460", "470", (Step("true"),), disturbs="replaces the driver"),
        busy=("python3 (\x1b[31m7)",),
        notes=("locked by ann: RMA",),
        losses=("the driver 460",),
    )
    assert "locked by ann: RMA" in text
    assert "deletes the driver 460 permanently (confirm at the prompt, or pass --yes)" in text
    assert "in use by python3" in text
    assert "pass --drain or --force (replaces the driver)" in text
    assert "\x1b" not in text
    assert "locked by ann" in shown(show_plan(HostPlan(Plan("gpu01", "tf"), notes=("locked by ann",))))


def test_hosts_whose_plans_read_alike_share_one_at_the_place_of_the_first():
    def planned(host: str, *changes: Planned, notes: tuple[str, ...] = ()) -> HostPlan:
        return HostPlan(Plan(host, "tf", (RolePlan("base", (), changes),) if changes else ()), notes=notes)

    fleet = [planned(f"gpu{number:02}", CHANGE) for number in range(1, 5)]
    fleet[1] = planned("gpu02", CHANGE, notes=("locked by ann: RMA",))
    fleet += [planned("box", CHANGE), planned("gpu09"), planned("gpu10")]
    lines = shown(*folded_plans(fleet)).splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "box,gpu[01,03-04] (4 hosts)  1 change to tf",
        "gpu02  1 change to tf",
        "gpu[09-10] (2 hosts)  as desired: nothing to do",
    ]
    assert sum("file /etc/x" in line for line in lines) == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *things, columns: int = 60) -> list[str]:
    """Return a verb's output in a terminal, or in a pipe, with this value of COLUMNS."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", stream)
    console = make_console()
    for thing in things:
        console.print(thing)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()


LONG = "the disk is full and so it goes on " * 10


def test_in_a_pipe_nothing_is_wrapped(monkeypatch: pytest.MonkeyPatch):
    plan = Plan("gpu01", "tf", (RolePlan("base", (), (Change("x", LONG, LONG, (Step("true"),), diff=f"-{LONG}"),)),))
    done = Outcome("a" * 200, Plan("a", "tf"), (), Plan("a", "tf"))
    failed = SeveralFailed("gpu02", [HostError("gpu02", LONG)])
    things = (show_plan(HostPlan(plan)), summary([done], [HostError("b", "no route")]), show_error(failed), Text(LONG))
    lines = printed(monkeypatch, io.StringIO(), *things)
    assert len(lines) == 4 + 3 + 1 + 1
    assert all(line == line.rstrip() for line in lines[4:7])  # a long cell does not pad the other lines
    assert lines[-1].rstrip() == LONG.rstrip()


def test_in_a_terminal_sentences_continue_deeper_and_lines_of_diffs_are_never_broken(monkeypatch: pytest.MonkeyPatch):
    text = f"{LONG}\t[with  gaps] {LONG}".rstrip()
    change = Change("x", "a", LONG, (Step("true"),), diff=f"-{text}\n+{text}")
    plan = show_plan(HostPlan(Plan("gpu01", "tf", (RolePlan("base", (), (change,)),))))
    lines = printed(monkeypatch, Terminal(), Text(LONG), "str", plan)
    sentence = lines[: lines.index("str")]
    assert len(sentence) > 5
    assert max(map(len, sentence)) <= 60
    assert [line.startswith("    ") for line in sentence] == [False, *[True] * (len(sentence) - 1)]
    diff = [line for line in lines if line.startswith(" " * 8) and line[8] in "-+"]
    assert diff == [f"        {sign}{one_line(text)}" for sign in "-+"]
    assert max(len(line) for line in lines if line not in diff) <= 60


@pytest.mark.parametrize(
    ("word", "ends"),
    [
        ("gpu[" + ",".join(f"{number:03}" for number in range(1, 200, 3)) + "]", ","),
        ("/usr" + "/directories" * 20, "/"),
        ("x" * 200, "x"),
        ("模" * 80, "模"),
    ],
    ids=["names", "path", "word", "wide"],
)
def test_a_word_that_is_longer_than_a_line_is_broken_where_it_can_be_read(
    monkeypatch: pytest.MonkeyPatch, word: str, ends: str
):
    lines = printed(monkeypatch, Terminal(), Text(f"  is {word} there"))
    assert {line[-1] for line in lines[1:-1]} == {ends}
    assert max(map(cell_len, lines)) <= 60
    assert "".join("".join(lines).split()) == f"is{word}there"


def test_no_sentence_is_yellow_which_a_light_background_hides():
    colour = make_console().get_style("yellow").color
    assert colour is not None
    assert colour.number == 130


def test_a_sentence_keeps_its_colours_when_it_is_continued(monkeypatch: pytest.MonkeyPatch):
    text = Text.assemble((LONG, "red"), (LONG, "green"))
    hanging = Hanging.of(text)
    assert (hanging.plain, hanging.spans, hanging.end) == (text.plain, text.spans, text.end)


@pytest.mark.parametrize("width", [20, 80, 120])
def test_what_a_host_says_begins_no_line_however_narrow_the_terminal_is(width: int):
    said = "ok " * 60 + "gpu02  as desired: nothing to do"
    plan = Plan("gpu01", "tf", (RolePlan("base", (), (Change("x", said, said, (Step("true"),)),)),))
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None)
    console.print(show_plan(HostPlan(plan, notes=(said,))), crop=False)
    console.print(show_error(StepFailed("gpu01", said, FailedStep("cuda", "x", "x", 1, (said,)))))
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines if not line.startswith("  ")] == ["gpu01", "gpu01:"]
    assert [line for line in lines if len(line) > width] == []
    assert " ".join(stream.getvalue().split()).count("gpu02 as desired: nothing to do") == 5


def test_a_plan_shows_have_want_diff_and_what_comes_later():
    later = Deferred("driver", "absent", "470.182.03", "a reboot")
    refused = Refusal("gpu", "busy", "idle", "display", "process 7 uses it")
    text = shown_plan(CHANGE, later, refused)
    for part in ("gpu01", "other text → 644 root root", "-old", "+new", "known after a reboot", "refused: process 7"):
        assert part in text


def test_an_escape_sequence_of_a_host_cannot_spoof_the_plan():
    spoof = Change("file /etc/x", "\x1b[2J\x1b[32mas desired\u202e", "x", (Step("true"),))
    assert "\x1b" not in shown_plan(spoof)


def test_markup_in_a_hosts_text_is_text():
    text = shown_plan(Change("[red]x[/red]", "[/]", "b", (Step("true"),)))
    assert "[red]x[/red]: [/]" in text


def test_a_failed_step_shows_sentence_command_status_and_tail():
    step = FailedStep("cuda", "packages", "apt-get …", 100, ("E: no space left", "\x1b[31mred"))
    text = shown(show_error(StepFailed("gpu01", "cuda: the disk is full. Free some.", step)))
    assert "gpu01: cuda: the disk is full. Free some." in text
    assert "exit status 100" in text
    assert "│ E: no space left" in text
    assert "\x1b" not in text


def test_failed_script_shows_status_and_last_lines():
    text = shown(show_error(ScriptFailed("gpu01", "its record cannot be written", 3, ("mktemp: \x1bno", "disk full"))))
    assert "gpu01: its record cannot be written: disk full" in text
    assert "exit status 3; its last lines:" in text
    assert "│ mktemp: " in text
    assert "\x1b" not in text
    brief = ScriptFailed("gpu01", "its record cannot be written", 3, ("disk full",))
    assert shown(show_error(brief)) == "gpu01: its record cannot be written: disk full\n"


def test_the_summary_has_a_line_for_hosts_to_which_the_same_happened_and_each_layer_once():
    result = RoleResult("cuda", 0, 12.34, (StepResult(0, "x", 0, 12.34),))
    plan = Plan("a", "tf", (RolePlan("cuda", (), (CHANGE,)),))
    done = Outcome("a", plan, (result,), Plan("a", "tf"), 1)
    same = Outcome("b", Plan("b", "tf"), (), Plan("b", "tf"))
    left = Outcome("c", plan, (result,), plan)
    again = replace(done, host="e", plan=replace(plan, host="e"), results=(result, replace(result, duration_s=60.0)))
    locked = Locked("f", "locked by ada: RMA")
    text = shown(summary([left, done, same, again, replace(same, host="g")], [HostError("d", "no route"), locked]))
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "host result",
        "a changed, 1 step, 1 reboot",
        "b,g (2 hosts) as desired, nothing done",
        "e changed, 2 steps, 1 reboot",
        "c reboot pending, 1 change left to make",
        "d failed, see below",
        "f locked, see below",
        "",
        "layer hosts steps longest",
        "cuda 3 4 1 min 12 s",
    ]


def test_what_a_host_says_begins_no_line():
    """It could look like another host's output."""
    lie = "no\ngpu01  as desired\r\u2028gpu01  as desired\x85gpu01  as desired"
    refusal = Refusal(lie, lie, lie, "rule", lie)
    plan = HostPlan(Plan("gpu09", "s", (RolePlan("base", (), (refusal,)),)), notes=(lie,), busy=(lie,))
    lines = shown(show_plan(plan), show_error(HostError("gpu09", lie))).splitlines()
    assert [line for line in lines if line.startswith("gpu01")] == []
    assert len(lines) < 15


def test_a_failed_step_is_told_once():
    step = FailedStep("cuda", "link /usr/local/cuda", "ln", 1, ("ln: no", "disk full"))
    sentence = "cuda, link /usr/local/cuda: the step ended with status 1: disk full"
    assert shown(show_error(StepFailed("gpu01", sentence, step))).splitlines() == [
        f"gpu01: {sentence}",
        "  last lines of the step:",
        "    │ ln: no",
        "    │ disk full",
    ]
    said = shown(show_error(StepFailed("gpu01", "the disk is full. Free some", step))).splitlines()[1]
    assert said == "  role cuda, link /usr/local/cuda, exit status 1; its last lines:"


def test_many_hosts_are_counted_first_and_named_below() -> None:
    fleet = [f"node{number:03}" for number in range(1, 100, 2)]
    plans = [HostPlan(Plan(name, "tf", (RolePlan("cuda", (), (CHANGE,)),))) for name in fleet]
    text = shown(*folded_plans([*plans, *(HostPlan(Plan(f"x{name}", "tf", ())) for name in fleet)]))
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("50 hosts  1 change to tf", "50 hosts  as desired: nothing to do")
    assert fold(fleet) in "".join(text.split())
    outcomes = [Outcome(plan.host, Plan(plan.host, "tf"), (), Plan(plan.host, "tf")) for plan in plans]
    assert shown(summary(outcomes, ())).splitlines()[1].split() == ["50", "hosts", "as", "desired,", "nothing", "done"]
    assert fold(fleet) in "".join(shown(summary((), (), fleet)).split()), "nobody else names hosts that were not begun"


def test_errors_of_many_hosts_begin_with_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = [f"node{number:03}" for number in range(1, 100, 2)]
    show_errors(tuple(Unreachable(name, "no route to host: run `invoke audit`") for name in fleet))
    assert capsys.readouterr().err.splitlines() == [
        "50 hosts: no route to host: run `invoke audit`",  # selects the hosts of the call
        f"  {fold(fleet)}",
    ]


@pytest.mark.parametrize("style", ["yellow", "bold yellow"])
def test_yellow_can_be_read_on_a_light_background(style: str) -> None:
    color = make_console().get_style(style).color
    assert color is not None and color.number == 130
