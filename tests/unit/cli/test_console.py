"""What reaches the terminal: plans with diffs, and never a host's own control characters."""

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hostwright.apply import events
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.jobs.scripting import Progress
from hostwright.cli.console import make_console, show_error, show_plan, show_plans, summary
from hostwright.cli.live import LiveTable, Plain
from hostwright.common.errors import FailedStep, HostError, ScriptFailed, StepFailed
from hostwright.common.text import printable
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
    )
    assert "locked by ann: RMA" in text
    assert "in use by python3" in text
    assert "it needs --drain or --force (replaces the driver)" in text
    assert "\x1b" not in text
    assert "locked by ann" in shown(show_plan(HostPlan(Plan("gpu01", "tf"), notes=("locked by ann",))))


def test_hosts_whose_plans_read_alike_share_one_at_the_place_of_the_first():
    def planned(host: str, *changes: Planned, notes: tuple[str, ...] = ()) -> HostPlan:
        return HostPlan(Plan(host, "tf", (RolePlan("base", (), changes),) if changes else ()), notes=notes)

    fleet = [planned(f"gpu{number:02}", CHANGE) for number in range(1, 5)]
    fleet[1] = planned("gpu02", CHANGE, notes=("locked by ann: RMA",))
    fleet += [planned("box", CHANGE), planned("gpu09"), planned("gpu10")]
    lines = shown(*show_plans(fleet)).splitlines()
    assert [line for line in lines if not line.startswith(" ")] == [
        "box,gpu[01,03-04] (4 hosts)  1 change to tf",
        "gpu02  1 change to tf",
        "gpu[09-10] (2 hosts)  as desired: nothing to do",
    ]
    assert sum("file /etc/x" in line for line in lines) == 2


@pytest.mark.parametrize("width", [20, 80, 120])
def test_what_a_host_says_begins_no_line_however_narrow_the_terminal_is(width: int):
    said = "ok " * 60 + "gpu02  as desired: nothing to do"
    plan = Plan("gpu01", "tf", (RolePlan("base", (), (Change("x", said, said, (Step("true"),), diff=f"-{said}"),)),))
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None)
    console.print(show_plan(HostPlan(plan, notes=(said,))))
    console.print(show_error(StepFailed("gpu01", said, FailedStep("cuda", "x", "x", 1, (said,)))))
    lines = stream.getvalue().splitlines()
    assert [line.split()[0] for line in lines if not line.startswith("  ")] == ["gpu01", "gpu01:"]
    assert max(map(len, lines)) <= width
    assert " ".join(stream.getvalue().split()).count("gpu02 as desired: nothing to do") == 6


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
    one_line = ScriptFailed("gpu01", "its record cannot be written", 3, ("disk full",))
    assert shown(show_error(one_line)) == "gpu01: its record cannot be written: disk full\n"


def test_the_summary_has_a_line_a_host():
    result = RoleResult("cuda", 0, 12.34, (StepResult(0, "x", 0, 12.34),))
    plan = Plan("a", "tf", (RolePlan("cuda", (), (CHANGE,)),))
    done = Outcome("a", plan, (result,), Plan("a", "tf"), 1)
    same = Outcome("b", Plan("b", "tf"), (), Plan("b", "tf"))
    left = Outcome("c", plan, (result,), plan)
    text = shown(summary([done, same, left], [HostError("d", "no route")]))
    assert "done, 1 step, 1 reboot" in text
    assert "cuda 12.3 s" in text
    assert "as desired, nothing done" in text
    assert "left to do: 1" in text
    assert "failed  " in text


def story(host: str):
    plan = Plan(host, "tf", (RolePlan("cuda", (), (CHANGE,)),))
    result = RoleResult("cuda", 0, 1.0, (StepResult(0, "x", 0, 1.0),))
    yield events.Observed(host, plan)
    yield events.Delivering(host, "cuda", "cuda.deb", 5, 10)
    yield events.Delivering(host, "cuda", "cuda.deb", 10, 10)
    yield events.RoleStarted(host, "cuda", 3)
    yield events.RoleProgress(host, "cuda", Progress(1, "packages", "\x1b[1mUnpacking"))
    yield events.Note(host, "rebooting: new module")
    yield events.RoleFinished(host, "cuda", result)
    yield events.Observed(host, Plan(host, "tf"))


def test_plain_lines_say_each_thing_once():
    stream = io.StringIO()
    with Plain(Console(file=stream, width=120, color_system=None)) as view:
        for event in story("gpu01"):
            view(event)
    lines = [line.split("gpu01  ")[1].strip() for line in stream.getvalue().splitlines()]
    assert lines == [
        "1 change: cuda",
        "cuda: cuda.deb is on the host (0 MB)",
        "cuda: 3 steps",
        "rebooting: new module",
        "cuda: ok after 1.0 s",
        "as desired",
    ]


def test_the_table_shows_progress_per_layer():
    console = Console(file=io.StringIO(), width=120, height=20, color_system=None)
    table = LiveTable(console, {"gpu01": ["base", "cuda"], "gpu02": ["base", "cuda"]})
    for event in list(story("gpu01"))[:5]:
        table(event)
    drawn = shown(table._draw())
    assert "2/3" in drawn
    assert "Unpacking" in drawn
    assert "\x1b" not in drawn
    for event in list(story("gpu01"))[5:]:
        table(event)
    assert "✓" in shown(table._draw())


def test_each_reason_for_waiting_is_a_line(capsys: pytest.CaptureFixture[str]):
    """A reboot takes half an hour: its states are seen in a log as well."""
    with Plain(make_console()) as view:
        for what in ("a connection", "its answers", "the reboot: going down", "the reboot: sshd answers"):
            view(events.Waiting("gpu01", what))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("gpu01")[2].strip() for line in lines] == [
        "waiting for the reboot: going down",
        "waiting for the reboot: sshd answers",
    ]


def test_a_repeated_note_of_a_host_is_printed_once(capsys: pytest.CaptureFixture[str]):
    with Plain(make_console()) as view:
        for text in ("one", "one", "two", "one"):
            view(events.Note("gpu01", text))
        view(events.Note("", "of the run"))
    said = [line.split()[2:] for line in capsys.readouterr().out.splitlines()]
    assert said == [["gpu01", "one"], ["gpu01", "two"], ["gpu01", "one"], ["of", "the", "run"]]


def test_what_a_host_says_begins_no_line():
    """It could pass for another host's."""
    lie = "no\ngpu01  as desired\r\u2028gpu01  as desired\x85gpu01  as desired"
    refusal = Refusal(lie, lie, lie, "rule", lie)
    plan = HostPlan(Plan("gpu09", "s", (RolePlan("base", (), (refusal,)),)), notes=(lie,), busy=(lie,))
    lines = shown(show_plan(plan), show_error(HostError("gpu09", lie))).splitlines()
    assert [line for line in lines if line.startswith("gpu01")] == []
    assert len(lines) < 15
