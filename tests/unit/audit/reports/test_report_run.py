"""Tests of the page of a run: the timeline, self-contained, and safe with hostile text of hosts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import RunSummary
from hostwright.apply.journal.runs import HostRun, RecordedRun, RoleRun
from hostwright.audit.reports.html.html import digest
from hostwright.audit.reports.run.page import OUTPUT_CHARACTERS, render_run, steps_of
from hostwright.audit.reports.run.timeline import MOST_TICKS, ticks, timeline, whole_time
from hostwright.cli.tasks.keep import runs_show
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.model import StepResult
from tests.unit.apply.journal.test_journal import record
from tests.unit.apply.journal.test_journal_reading import STORY
from tests.unit.audit.reports.test_report_html import HOSTILE_PAGES, Page
from tests.unit.support.audits import HOSTILE

GOOD = StepResult(0, "package cuda", 0, 8.0, "Unpacking\nSetting up")
BAD = StepResult(1, "file /etc/motd", 7, 2.0, "E: no space left on device", 3)
#: base, then driver; then cuda and container in parallel, one of which fails
BUSY = HostRun(
    "gpu02",
    "failed",
    "cuda: no space left on /usr",
    roles=(
        RoleRun("base", 10.0, 1, status=0, duration_s=10.0, steps=(GOOD,)),
        RoleRun("driver", 20.0, 1, status=0, duration_s=20.0, steps=(GOOD,)),
        RoleRun("cuda", 100.0, 2, status=7, duration_s=50.0, steps=(GOOD, BAD)),
        RoleRun("container", 120.0, 1, status=0, duration_s=10.0, steps=(GOOD,)),
    ),
    said=({"kind": "rebooted", "reason": "nouveau", "seconds": 60.0, "t": 100.0}, {"kind": "note", "text": "waits"}),
)
FIRST = HostRun("gpu03", "changed", roles=(RoleRun("base", 0.0, 1, status=0, duration_s=30.0, steps=(GOOD,)),))
KILLED = HostRun("gpu01", "interrupted", roles=(RoleRun("base", 150.0, 3),))
SILENT = HostRun("gpu04", "unreachable", "gpu04:22 refuses the connection")
HOSTS = (KILLED, BUSY, FIRST, SILENT)


def page(*hosts: HostRun, **more: Any) -> str:
    header = RunHeader(
        "run-1", "provision", tuple(host.host for host in hosts), "/site", argv=("hostwright", "provision")
    )
    header = replace(header, **{name: more.pop(name) for name in ("argv", "operator") if name in more})
    results = {host.result: 1 for host in hosts}
    summary = RunSummary("run-1", Path(), header, "2026-11-23T10:15:00+00:00", "ended", 1, "", 200.0, results)
    return render_run(replace(summary, **more), RecordedRun("run-1", header, hosts))


def test_hosts_are_in_the_order_in_which_they_were_begun() -> None:
    rows = timeline(HOSTS, 200.0)
    assert [row.host for row in rows] == ["gpu03", "gpu02", "gpu01"], "and one that was never begun is not there"


def test_layers_that_ran_at_once_lie_below_each_other() -> None:
    (row,) = timeline((BUSY,), 200.0)
    assert [(piece.title.split(",")[0], piece.lane, piece.start, piece.width) for piece in row.pieces] == [
        ("base", 0, 5.0, 5.0),
        ("driver", 0, 10.0, 10.0),
        ("reboot", 0, 20.0, 30.0),
        ("cuda", 0, 50.0, 25.0),
        ("container", 1, 60.0, 5.0),
    ]
    assert row.lanes == 2
    assert {piece.kind for piece in row.pieces} == {"ok", "failed", "reboot"}


def test_a_layer_without_an_end_goes_on_to_the_end_of_what_is_known() -> None:
    (row,) = timeline((KILLED,), 200.0)
    (piece,) = row.pieces
    assert (piece.kind, piece.start, piece.width) == ("open", 75.0, 25.0)
    assert "no end recorded" in piece.title


def test_a_killed_run_lasts_as_long_as_its_last_record() -> None:
    assert whole_time(HOSTS, None) == 150.0
    assert whole_time((), None) > 0


_seconds = st.floats(-10, 1e7, allow_nan=False)
_roles = st.builds(
    RoleRun, st.text(max_size=8), _seconds, st.integers(0, 9), status=st.none() | st.integers(0, 9), duration_s=_seconds
)


@given(st.lists(_roles, max_size=8), st.none() | _seconds)
@example([RoleRun("", -1.0, 0, status=None, duration_s=0.0)], None)
def test_whatever_was_recorded_lies_on_the_page(roles: list[RoleRun], duration_s: float | None) -> None:
    host = HostRun("gpu01", "failed", roles=tuple(roles))
    whole_s = whole_time((host,), duration_s)
    for row in timeline((host,), whole_s):
        for piece in row.pieces:
            assert 0 <= piece.start <= 100
            assert 0 < piece.width <= 100.001
            assert piece.start + piece.width <= 100.2
            assert piece.lane < row.lanes
    marks = ticks(whole_s)
    assert len(marks) <= 10 * MOST_TICKS
    assert all(0 < place < 100 for place, _ in marks)


def test_marks_of_time_are_round() -> None:
    assert [text for _, text in ticks(1300.0)] == ["5 min", "10 min", "15 min", "20 min"]
    assert [text for _, text in ticks(45.0)] == ["10 s", "20 s", "30 s", "40 s"]
    assert [text for _, text in ticks(9000.0)] == ["30 min", "1 h", "1 h 30 min", "2 h"]


def test_each_host_has_its_layers_with_their_times_and_failed_ones_come_first() -> None:
    text = page(*HOSTS)
    assert re.findall(r'href="#host-\d"><bdi>(\w+)', text) == ["gpu02", "gpu04", "gpu01", "gpu03"]
    assert re.findall(r'class="column"><span>(\w+)', text) == ["base", "driver", "cuda", "container"]
    row = text[text.index('href="#host-1"') : text.index('href="#host-2"')]
    assert re.findall(r'class="c s-(\w+)".*?class="(?:word|hidden)">([^<]+)', row) == [
        ("desired", "10.0 s"),
        ("desired", "20.0 s"),
        ("failing", "50.0 s"),
        ("desired", "10.0 s"),
    ]
    assert "cuda: no space left on /usr" in row


def test_hosts_to_which_the_same_happened_are_one_row_and_none_is_lost() -> None:
    slow = replace(FIRST, host="node07", roles=(replace(FIRST.roles[0], duration_s=90.0),))
    many = [replace(FIRST, host=f"node{number:02}") for number in range(1, 7)]
    silent = [replace(SILENT, host=f"rack{number}") for number in range(1, 4)]
    text = page(BUSY, *many, slow, *silent)
    matrix = text[text.index('id="matrix"') : text.index('id="timeline"')]
    rows = re.findall(r'href="#([\w-]+)"><bdi>([\w ]+)</bdi></a>(?:<small class="names"><bdi>([^<]+))?', matrix)
    assert [row[1:] for row in rows] == [("gpu02", ""), ("3 hosts", "rack[1-3]"), ("7 hosts", "node[01-07]")]
    assert "up to 1 min 30 s" in matrix and "rack[1-3]: gpu04:22 refuses the connection" in matrix
    timeline_of = text[text.index('id="timeline"') : text.index("more hosts with the same result")]
    assert re.findall(r'<th scope="row"><bdi>([\w ]+)</bdi>', timeline_of) == ["gpu02", "7 hosts"]
    steps = text[text.index('id="steps"') :]
    assert all(f"<bdi>{host.host}</bdi>" in steps for host in (*many, slow, *silent))


def test_below_a_host_stands_when_its_layers_ran_and_what_its_end_waited_for() -> None:
    text = page(*HOSTS)
    each = {part.split("</bdi>")[0].split("<bdi>")[-1]: part for part in text.split('<details class="host-run')[1:]}
    assert [name for name, part in each.items() if "<h3>When</h3>" in part] == ["gpu02", "gpu01", "gpu03"]
    when, waited = re.findall(r'class="when">(.*?)</[uo]l>', each["gpu02"], re.DOTALL)
    assert [title.split(",")[0] for title in re.findall("<bdi>(.*?)</bdi>", when)] == [
        "base", "driver", "reboot", "cuda", "container",
    ]  # fmt: skip
    assert re.findall("<bdi>(.*?)</bdi>", waited)[-1] == "cuda"


def test_the_slowest_host_of_each_layer_is_named() -> None:
    text = page(*HOSTS)
    section = text[text.index('id="times"') : text.index('id="steps"')]
    rows = [re.findall(r">([^<>\n]+)</(?:th|td|bdi)>", row) for row in section.split("<tr>")[2:]]
    assert rows[0] == ["base", "3", "0", "10.0 s", "30.0 s", "gpu03"]
    assert rows[2] == ["cuda", "1", "1", "50.0 s", "50.0 s", "gpu02"]


def test_a_failed_step_shows_what_it_printed_and_comes_first() -> None:
    steps, more = steps_of(BUSY)
    assert (steps[0][1].what, more) == ("file /etc/motd", 0)
    text = page(BUSY)
    assert "E: no space left on device" in text and "status 7, 3 tries" in text
    assert "Unpacking" not in text, "what went well printed nothing that matters"


def test_a_step_that_printed_much_is_cut_at_its_beginning() -> None:
    step = replace(BAD, output="begin\n" + "x" * 2 * OUTPUT_CHARACTERS + "\nthe end")
    host = replace(BUSY, roles=(RoleRun("cuda", 0.0, 1, status=7, steps=(step,)),))
    text = page(host)
    assert "the end" in text and "begin\n" not in text and "… cut (8," in text


def test_the_page_fetches_nothing_and_runs_nothing() -> None:
    seen = Page(page(*HOSTS))
    (policy,) = (one["content"] for one in seen.all("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert f"style-src '{digest(seen.texts['style'][0])}'" in str(policy)
    assert "default-src 'none'" in str(policy)
    assert not seen.all("script")
    for tag, attributes in seen.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "style", "action")], tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
    ids = [str(attributes["id"]) for _, attributes in seen.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {str(one["href"])[1:] for one in seen.all("a")}
    assert targets <= set(ids)


@pytest.mark.parametrize("evil", [*HOSTILE_PAGES, HOSTILE])
def test_a_lying_host_becomes_no_element_and_steers_nothing(evil: str) -> None:
    step = StepResult(0, evil, 1, 0.0, evil)
    role = RoleRun(evil, 0.0, 1, evil, evil, 1, 5.0, (step,))
    said = ({"kind": "explained", "what": evil, "why": evil, "findings": [{"rule": evil, "cause": evil}]},)
    rebooted = ({"kind": "rebooted", "reason": evil, "seconds": 1.0, "t": 2.0},)
    text = page(HostRun(evil, evil, evil, roles=(role,), said=said + rebooted), argv=(evil,), operator=evil)
    seen = Page(text)
    assert {tag for tag, _ in seen.elements} == {tag for tag, _ in Page(page(BUSY)).elements}
    assert not set(text) & {"\x1b", "\u202e", "\x07", "\x00", "\x9b"}


def test_records_of_no_form_are_no_error() -> None:
    said = ({"kind": "explained", "findings": [1, None]}, {"kind": "rebooted", "seconds": "x"}, {"kind": "phase"})
    assert "gpu09" in page(HostRun("gpu09", "failed", said=said))
    assert "No host was in this run" in page(duration_s=None, results={})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path))
    record(tmp_path, 1, *STORY)
    return tmp_path


def test_the_verb_writes_the_page_for_the_operator_alone(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = place / "run.html"
    assert runs_show(Request(), html=str(file)) == 0
    assert capsys.readouterr().out == ""
    assert file.stat().st_mode & 0o777 == 0o600
    assert "<h1>Run run1</h1>" in file.read_text("utf-8")
    assert runs_show(Request(hosts="gpu02", json=True), html=str(file)) == 0
    assert [host["host"] for host in json.loads(capsys.readouterr().out)["hosts"]] == ["gpu02"]
    assert ">gpu01<" not in file.read_text("utf-8")


def test_the_page_can_go_to_standard_output_but_not_beside_json(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert runs_show(Request(), html="-") == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    with pytest.raises(InputError, match="only one report can go to standard output"):
        runs_show(Request(json=True), html="-")
    with pytest.raises(InputError, match="there is no directory"):
        runs_show(Request(), html=str(place / "none" / "run.html"))
