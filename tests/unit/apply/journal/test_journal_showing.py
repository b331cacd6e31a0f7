"""``invoke runs`` and ``invoke runs.show``."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply import events
from hostwright.cli import console
from hostwright.cli.tasks.keep import runs_list, runs_show
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.model import Plan, RoleResult, StepResult
from tests.unit.apply.journal.test_journal import begin, record
from tests.unit.apply.journal.test_journal_reading import ENDED, HOSTS, STORY, at
from tests.unit.support.known import KNOWN

#: A journal written by the version in which one class stood for all four kinds of what a state plans.
BEFORE_KINDS = Path(__file__).parents[3] / "fixtures" / "journal-before-kinds.jsonl"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path


def listed(**options: Any) -> int:
    return runs_list(Request(**options))


def shown(*, run: str = "last", steps: bool = False, **options: Any) -> int:
    return runs_show(Request(**options), run=run, steps=steps)


def test_a_line_a_run_with_hosts_folded_and_results_counted(place: Path, capsys: pytest.CaptureFixture[str]):
    record(place, 1, *ENDED[:2], run="first", began=at(1), hosts=HOSTS)
    begin(place, run="killed", began=at(2)).close()
    going = begin(place, run="going", began=at(3))
    assert listed() == 0
    rows = {line.split()[0]: " ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    assert list(rows) == ["run", "going", "killed", "first"]
    assert rows["first"].startswith("first 2024-05-01 0.")
    assert rows["first"].endswith("s provision ann gpu[01-08] 1 changed, 1 failed, 6 untouched 1")
    assert rows["going"].endswith("running")
    assert rows["killed"].endswith("2 untouched interrupted")
    going.end(0)


LONG = "20261124t0016{:02}-{:04x}"


def test_the_list_fits_80_columns_and_its_short_ids_name_the_runs(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "UNBOUNDED", 80)
    hosts = tuple(f"rack{number}-gpu{number:03}.cluster.example.org" for number in range(40))
    story = tuple(events.HostEnded(host, result) for host, result in zip(hosts, events.RESULTS[:6] * 7, strict=False))
    for number, verb in enumerate(("workspace.down", "provision", "rollback")):
        record(place, 1, *story, run=LONG.format(number, 0xAB00 + number), began=at(number), hosts=hosts, verb=verb)
    record(place, 0, run=LONG.format(9, 0xAB00), hosts=HOSTS, operator="somebody@a-long-name.example.org")
    assert listed() == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    words = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert sorted(words[1:]) == [LONG.format(0, 0xAB00), LONG.format(9, 0xAB00), "ab01", "ab02"], "two runs end alike"
    for word in words[1:]:
        assert shown(run=word, json=True) == 0
        assert json.loads(capsys.readouterr().out)["run"].endswith(word)


def test_an_end_that_two_runs_have_is_refused_with_both(place: Path) -> None:
    runs_here = [LONG.format(number, 0xAB00) for number in (1, 2)]
    for run in runs_here:
        record(place, 0, run=run)
    with pytest.raises(InputError, match="2 run IDs begin or end with 'ab00': ") as caught:
        shown(run="ab00")
    assert all(run in str(caught.value) for run in runs_here)


@pytest.mark.parametrize(
    ("before", "told"),
    [(-90, "just now"), (20, "just now"), (130, "2 min ago"), (7 * 3600, "7 h ago"), (3 * 86400 + 9, "3 days ago")],
)
def test_how_long_ago_a_run_began(place: Path, capsys: pytest.CaptureFixture[str], before: int, told: str) -> None:
    record(place, 0, began=(datetime.now(UTC) - timedelta(seconds=before)).isoformat())
    assert listed() == 0
    assert f" {told} " in capsys.readouterr().out


def test_a_locked_host_has_not_failed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record(place, 1, events.HostEnded("gpu01", "locked", "locked by ada"), events.HostEnded("gpu02", "failed", "no"))
    shown(hosts="@failed", json=True)
    assert [one["host"] for one in json.loads(capsys.readouterr().out)["hosts"]] == ["gpu02"]
    shown(hosts="@locked", json=True)
    assert [one["host"] for one in json.loads(capsys.readouterr().out)["hosts"]] == ["gpu01"]


def test_only_the_last_runs_are_listed_unless_all_are_wanted(place: Path, capsys: pytest.CaptureFixture[str]):
    for number in range(25):
        record(place, 0, run=f"run{number:02}", began=at(number))
    for options, number, last in (({}, 20, "run05"), ({"limit": 3}, 3, "run22"), ({"limit": 0}, 25, "run00")):
        assert listed(**options) == 0
        out = capsys.readouterr().out
        assert sum(line.startswith("run") for line in out.splitlines()) == number + 1
        assert last in out
        assert ("of 25 runs" in out) == (number < 25)


def test_no_runs_is_an_error_only_when_one_is_named(capsys: pytest.CaptureFixture[str]):
    assert listed() == 0
    assert "no run is recorded" in capsys.readouterr().out.replace("\n", " ")
    with pytest.raises(InputError, match="no run is recorded"):
        shown()


def test_one_run_is_shown_host_by_host(place: Path, capsys: pytest.CaptureFixture[str]):
    record(place, 1, *STORY)
    assert shown(details=True) == 0
    out = capsys.readouterr().out
    for words in (
        "run1  provision  exit 1",
        "began 2024-05-01 10:00, took",
        "commit cccc",
        "command invoke provision",
        '"var": ["cuda_version=11.2"]',
        "1 failed, 1 interrupted",
        "gpu01  failed  base hung",
        "plan 1: 1 change to tf: cuda 1",
        "cuda: failed with status 255, 1.0 s, 1 of 3 steps",
        "cuda: ok, 2.5 s, 1 of 3 steps, job of run0 of bob@desk",
        "✓ 2.5 s  toolkit  2 tries",
        "✗ 0.0 s  toolkit  interrupted",
        "base: no end recorded, 0.0 s, 0 of 1 step",
        "retried: connection, try 2, after 1.5 s: reset",
        "rebooted, back after 1 min 30 s: nouveau",
        "gpu02  interrupted",
        "waiting",
    ):
        assert words in out
    assert "Unpacking" not in out
    assert shown(steps=True) == 0
    assert "│ Unpacking\n        │ Setting up" in capsys.readouterr().out


def test_a_run_is_short_unless_details_are_wanted(place: Path, capsys: pytest.CaptureFixture[str]):
    toolkit = StepResult(1, "toolkit", 0, 2.5, "Unpacking")
    broken = StepResult(2, "link /usr/local/cuda", 1, 0.1, "ln: not permitted")
    story: list[events.Event] = []
    for host in ("gpu01", "gpu02", "gpu03", "gpu04"):
        steps, status = ((toolkit, broken), 1) if host == "gpu04" else ((toolkit,), 0)
        story += [
            events.Retrying(host, "connection", 1, 1.5, "reset"),
            events.RoleFinished(host, "cuda", RoleResult("cuda", status, 2.5, steps)),
            events.HostEnded(host, "failed" if status else "changed"),
        ]
    explained = [events.Explained("gpu04", f"cuda: check {number}", "no") for number in range(5)]
    record(place, 1, *story[:-1], *explained, story[-1], hosts=("gpu01", "gpu02", "gpu03", "gpu04"))
    shown()
    lines = capsys.readouterr().out.splitlines()
    assert lines[3:-1] == [
        "  3 changed, 1 failed",
        "gpu[01-03] (3 hosts)  changed",
        "  cuda 1 step in 2.5 s",
        "gpu04  failed",
        "  cuda: failed with status 1, 2.5 s",
        "    ✗ 0.1 s  link /usr/local/cuda  status 1",
        "        │ ln: not permitted",
        *(f"  cuda: check {number}: no" for number in range(3)),
        "  and 2 more failed checks",
    ]
    assert lines[-1] == "every step: invoke runs.show --run run1 --details"


def test_a_cause_of_a_run_is_told_once_for_all_checks_and_hosts(place: Path, capsys: pytest.CaptureFixture[str]):
    finding = KNOWN.explained("Failed to initialize NVML: Driver/library version mismatch")
    assert finding is not None
    said = [events.Explained(host, f"driver: {n}", "no", (finding,)) for host in ("gpu01", "gpu02") for n in "ab"]
    record(place, 1, *said, *(events.HostEnded(host, "failed", "driver") for host in ("gpu01", "gpu02")))
    shown()
    out = capsys.readouterr().out
    assert out.count(finding.cause) == 1 and "gpu[01-02] (2 hosts)  failed  driver" in out


def test_a_host_as_desired_says_so(place: Path, capsys: pytest.CaptureFixture[str]):
    record(place, 0, events.Observed("gpu01", Plan("gpu01", "tf")), events.HostEnded("gpu01", "as desired"))
    shown(details=True)
    assert "plan 1: as desired, tf" in capsys.readouterr().out


def test_a_check_that_failed_is_shown_with_the_known_problem(place: Path, capsys: pytest.CaptureFixture[str]):
    finding = KNOWN.explained("Failed to initialize NVML: Driver/library version mismatch")
    assert finding is not None
    said = events.Explained("gpu01", "driver: every card is listed", "nvidia-smi says: no", (finding,))
    record(place, 1, said, events.HostEnded("gpu01", "failed", "driver"))
    shown(details=True)
    out = " ".join(capsys.readouterr().out.split())
    assert "driver: every card is listed: nvidia-smi says: no" in out
    assert f"{finding.cause}. {finding.cure} (version-mismatch)" in out


def test_a_run_that_was_recorded_before_the_four_kinds_is_shown_whole(place: Path, capsys: pytest.CaptureFixture[str]):
    folder = place / "runs" / "run0"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_bytes(BEFORE_KINDS.read_bytes())
    assert listed() == 0
    assert "1 changed, 1 failed" in " ".join(capsys.readouterr().out.split())
    assert shown(steps=True) == 0
    out = capsys.readouterr().out
    for words in (
        "run0  provision  exit 1",
        "gpu01  changed",
        "plan 1: 3 changes to tensorflow-2.9: base 2, driver 1",
        "plan 3: as desired, tensorflow-2.9",
        "rebooted, back after 1 min 30 s: nouveau drives 0000:3b:00.0, and gives it back only then",
        "NVIDIA driver",
        "gpu02  failed  Secure Boot is on",
    ):
        assert words in out
    assert "damaged" not in out
    assert shown(json=True) == 0
    plan = json.loads(capsys.readouterr().out)["hosts"][0]["plans"][0]
    assert plan["roles"][1]["changes"][0]["known_after"] == "reboot", "as it was written then"


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("gpu02", ["gpu02"]),
        ("gpu[01-02]", ["gpu01", "gpu02"]),
        ("@failed", ["gpu02", "gpu03", "gpu04"]),
        ("!@failed,!gpu08", ["gpu01", "gpu05", "gpu06", "gpu07"]),
        ("*3,~.*7$", ["gpu03", "gpu07"]),
    ],
)
def test_hosts_of_a_run_can_be_chosen_though_they_left_the_inventory(place, capsys, pattern: str, chosen: list[str]):
    record(place, 1, *ENDED, hosts=HOSTS)
    shown(hosts=pattern, json=True)
    assert [one["host"] for one in json.loads(capsys.readouterr().out)["hosts"]] == chosen
    with pytest.raises(InputError, match="gpu09"):
        shown(hosts="gpu09")


def test_json_has_everything(place: Path, capsys: pytest.CaptureFixture[str]):
    record(place, 1, *STORY)
    assert listed(json=True) == 0
    (summary,) = json.loads(capsys.readouterr().out)["runs"]
    assert (summary["run"], summary["state"], summary["status"]) == ("run1", "ended", 1)
    assert summary["header"]["options"]["hosts"] == "all"
    assert shown(json=True) == 0
    run = json.loads(capsys.readouterr().out)
    assert run["hosts"][0]["roles"][1]["steps"][0]["output"] == "Unpacking\nSetting up"
    assert run["hosts"][0]["plans"][0]["roles"][0]["role"] == "cuda"
    assert run["hosts"][0]["said"][0]["reason"] == "reset"
    assert run["damaged"] == 0


def test_no_text_of_a_host_reaches_the_terminal_raw(place: Path, capsys: pytest.CaptureFixture[str]):
    evil = "\x1b]0;owned\x07\u202e[bold red]x\x9b31m"
    step = StepResult(0, evil, 1, 0.0, evil)
    said = (
        events.Observed("gpu01", Plan("gpu01", evil)),
        events.Attached("gpu01", evil, 1, evil, evil, evil),
        events.RoleFinished("gpu01", evil, RoleResult(evil, 1, 0.0, (step,))),
        events.Retrying("gpu01", evil, 1, 1.0, evil),
        events.Rebooted("gpu01", evil, 1.0),
        events.Silent("gpu01", evil, 1.0),
        events.Delivering("gpu01", evil, evil, 1, 1),
        events.Note("gpu01", evil),
        events.Note("", evil),
        events.HostEnded("gpu01", evil, evil),
    )
    journal = begin(place, verb=evil, operator=evil, argv=(evil,), options={evil: evil}, hosts=("gpu01", evil))
    for event in said:
        journal(event)
    journal.end(1, "crashed", evil)
    assert shown(steps=True) == 0
    assert listed() == 0
    out = capsys.readouterr().out
    assert out.count("[bold red]x") > 12, "shown as the text that it is"
    assert not set("\x1b\x07\x9b\u202e") & set(out)


def test_a_damaged_record_is_shown_as_far_as_it_goes(place: Path, capsys: pytest.CaptureFixture[str]):
    journal = record(place, None, *STORY)
    wrong = [
        {"kind": "observed", "host": "gpu01", "plan": {"roles": [5, {"role": 1, "changes": 5}], "stack": "tf"}},
        {"kind": "observed", "host": "gpu01", "plan": {}},
        {"kind": "rebooted", "host": "gpu01", "seconds": "x"},
        {"kind": "retrying", "host": "gpu01", "t": "x"},
        {"kind": "new", "host": "gpu01", "more": 1},
    ]
    with journal.path.open("a") as file:
        file.write('{"kind": "no\n' + "".join(json.dumps(one) + "\n" for one in wrong))
    assert shown(steps=True) == 0
    out = capsys.readouterr().out
    assert "not shown: 1 damaged line of the record" in out
    assert 'new {"more": 1}' in out
    assert "a plan that cannot be read" in out
    journal.path.write_text("")
    assert shown() == 0
    assert "unknown" not in capsys.readouterr().out, "its directory says when it began"
    assert listed() == 0
