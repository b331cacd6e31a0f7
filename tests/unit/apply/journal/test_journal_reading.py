"""Reading the record of runs: whatever a crash, a full disk or a lying file made of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply import events
from hostwright.apply.journal.reading import Runs, summary_of
from hostwright.apply.journal.runs import HostRun
from hostwright.apply.journal.selecting import SETS, check_sets, named_sets, resumable, to_resume
from hostwright.apply.journal.writing import Journal
from hostwright.audit.history.store import sets_of
from hostwright.common.errors import InputError
from hostwright.common.places import RUN_SETS
from hostwright.inventory import Host, Inventory, select
from hostwright.inventory.model import ALL, Group
from hostwright.plan.model import RoleResult, StepResult
from tests.unit.apply.journal.test_journal import DONE, FACTS, INVENTORY, PLAN, begin, record

HOSTS = ("gpu01", "gpu02", "gpu03", "gpu04", "gpu05", "gpu06", "gpu07", "gpu08")
CUT = RoleResult("cuda", 255, 1.0, (StepResult(0, "toolkit", None, 0.0, "Unpack"),))
ENDED = (
    events.HostEnded("gpu01", "changed"),
    events.HostEnded("gpu02", "failed", "disk full"),
    events.HostEnded("gpu03", "unreachable"),
    events.Observed("gpu04", PLAN),
    events.HostEnded("gpu05", "pending"),
    events.HostEnded("gpu06", "as desired"),
    events.HostEnded("gpu07", "stopped"),
)
STORY = (
    events.Observed("gpu01", PLAN, FACTS),
    events.RoleStarted("gpu01", "cuda", 3, "run1-cuda-aa"),
    events.Retrying("gpu01", "connection", 2, 1.5, "reset"),
    events.RoleFinished("gpu01", "cuda", CUT),
    events.Attached("gpu01", "cuda", 3, "run0-cuda-bb", "run0", "bob@desk"),
    events.RoleStarted("gpu01", "base", 1, "run1-base-cc"),
    events.RoleFinished("gpu01", "cuda", DONE),
    events.Rebooted("gpu01", "nouveau", 90.0),
    events.Observed("gpu01", PLAN, FACTS),
    events.HostEnded("gpu01", "failed", "base hung"),
    events.Note("gpu02", "waiting"),
)


def at(minute: int) -> str:
    return f"2024-05-01T10:{minute:02}:00.000+00:00"


def host(root: Path, name: str, run: str = "run1") -> HostRun:
    return next(one for one in Runs(root).load(run).hosts if one.host == name)


def test_runs_are_listed_newest_first_with_what_came_of_them(tmp_path: Path):
    record(tmp_path, 1, *ENDED, run="b", began=at(1), hosts=HOSTS)
    record(tmp_path, 0, run="a", began=at(2), verb="verify")
    (tmp_path / "runs" / "no-directory").write_text("")
    found = Runs(tmp_path).list()
    assert [(one.run, one.header.verb, one.state, one.status) for one in found] == [
        ("a", "verify", "ended", 0),
        ("b", "provision", "ended", 1),
    ]
    assert Counter(found[1].results) == Counter(
        ["changed", "failed", "unreachable", "interrupted", "pending", "as desired", "stopped", "untouched"]
    )
    assert found[0].results == {"untouched": 2}
    assert all(one.duration_s is not None for one in found)


def test_a_run_is_shown_with_every_job_and_what_was_said(tmp_path: Path):
    record(tmp_path, 1, *STORY)
    run = Runs(tmp_path).load("run1")
    assert [(one.host, one.result) for one in run.hosts] == [("gpu01", "failed"), ("gpu02", "interrupted")]
    one = run.hosts[0]
    assert one.sentence == "base hung"
    assert [(role.role, role.status, role.planned, role.attached) for role in one.roles] == [
        ("cuda", 255, 3, ""),
        ("cuda", 0, 3, "run0 of bob@desk"),
        ("base", None, 1, ""),
    ]
    assert one.roles[0].steps == CUT.steps
    assert one.roles[1].steps == DONE.steps
    assert one.roles[1].duration_s == 2.5
    assert [said["kind"] for said in one.said] == ["retrying", "rebooted"]
    assert [path.name for path in one.facts] == ["gpu01.before.json.gz", "gpu01.after.json.gz"]
    assert all(path.is_file() for path in one.facts)
    assert one.plans == (PLAN.to_json(), PLAN.to_json()) or json.loads(json.dumps(PLAN.to_json())) == one.plans[1]
    assert run.damaged == 0


def test_a_run_that_goes_on_is_told_from_one_that_was_killed(tmp_path: Path):
    program = (
        "import sys; from pathlib import Path\n"
        "from tests.unit.apply.journal.test_journal import begin; from hostwright.apply import events\n"
        "journal = begin(Path(sys.argv[1])); journal(events.Note('gpu01', 'at work')); print('ready', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path.cwd()
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            running = Runs(tmp_path).find("last")
            assert (running.state, running.status, running.results) == ("running", None, {"running": 1, "waiting": 1})
            assert named_sets(tmp_path, INVENTORY) == {}, "its results are not in yet"
            with pytest.raises(InputError, match="still in progress"):
                to_resume(tmp_path, INVENTORY)
        finally:
            process.kill()
    killed = Runs(tmp_path).find("last")
    assert (killed.state, killed.status, killed.results) == ("interrupted", None, {"interrupted": 1, "untouched": 1})
    assert to_resume(tmp_path, INVENTORY).hosts == ("gpu01", "gpu02")


def test_a_run_of_a_crashed_or_interrupted_controller_says_so(tmp_path: Path):
    for run, error in (("crash", ZeroDivisionError("x")), ("stop", KeyboardInterrupt())):
        with pytest.raises(type(error)), begin(tmp_path, run=run):
            raise error
    states = {one.run: (one.state, one.status) for one in Runs(tmp_path).list()}
    assert states == {"crash": ("crashed", 1), "stop": ("interrupted", 130)}


@pytest.mark.parametrize("content", [None, b"", b"\n", b"{", b"\0" * 4096, b"[1]\n", b'{"kind": 5}\n', b"\xff\xfe\n"])
def test_run_without_records_is_listed(tmp_path: Path, content: bytes | None):
    record(tmp_path, 0, *ENDED, run="whole", began=at(1), hosts=HOSTS)
    folder = tmp_path / "runs" / "empty"
    folder.mkdir()
    if content is not None:
        (folder / "journal.jsonl").write_bytes(content)
    assert [(one.run, one.state, one.header.verb) for one in Runs(tmp_path).list()] == [
        ("empty", "interrupted", ""),
        ("whole", "ended", "provision"),
    ]
    run = Runs(tmp_path).load("empty")
    assert (run.hosts, run.header.run) == ((), "")
    assert named_sets(tmp_path, INVENTORY)["changed"] == {"gpu01"}
    assert to_resume(tmp_path, INVENTORY).run == "whole"
    record(tmp_path, 0, run="next", began=at(2))


def whole(root: Path) -> bytes:
    return record(root, 1, *STORY).path.read_bytes()


def read_all(root: Path, content: bytes) -> tuple[Any, Any]:
    """A run whose journal holds this, read in every way there is."""
    folder = root / "runs" / "run1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "journal.jsonl").write_bytes(content)
    named_sets(root, INVENTORY)
    return Runs(root).list()[0], Runs(root).load("run1")


def test_a_journal_torn_at_any_byte_keeps_every_line_before(tmp_path: Path):
    content = whole(tmp_path / "a")
    ends = [place for place, byte in enumerate(content) if byte == 10]
    near = {end + step for end in ends for step in (-1, 0, 1)}
    for cut in sorted(near | set(range(0, len(content), 7))):
        summary, run = read_all(tmp_path / "b", content[:cut])
        kept = sum(end <= cut for end in ends)  # a line that only lacks its newline is whole
        assert run.damaged == 0, cut
        assert summary.state == ("ended" if kept == len(ends) else "interrupted"), cut
        results = {one.host: one.result for one in run.hosts}
        expected = None if kept < 1 else "untouched" if kept < 2 else "interrupted" if kept < 11 else "failed"
        assert results.get("gpu01") == expected, cut
        assert summary.results == Counter(results.values()), cut


def test_a_damaged_line_is_passed_over_and_counted(tmp_path: Path):
    rows = whole(tmp_path / "a").splitlines(keepends=True)
    rows[3] = rows[3][: len(rows[3]) // 2] + b"\n"
    rows[6] = b"\0\xff garbage\n"
    rows.insert(7, b"\n")
    summary, run = read_all(tmp_path / "b", b"".join(rows))
    assert run.damaged == 2
    assert (summary.state, summary.status) == ("ended", 1)
    assert [(one.host, one.result) for one in run.hosts] == [("gpu01", "failed"), ("gpu02", "interrupted")]


def test_records_that_are_not_what_they_should_be_are_counted(tmp_path: Path):
    wrong = [
        {"kind": "observed", "host": "gpu01", "plan": 5},
        {"kind": "role started", "host": "gpu01", "role": 5, "steps": 1, "t": 0},
        {"kind": "role finished", "host": "gpu01", "role": "cuda", "status": 0, "steps": [{"number": "x"}, 7]},
        {"kind": "host ended", "host": "gpu01", "result": None},
        {"kind": "note", "host": ["gpu01"], "text": "x"},
    ]
    fine = [{"kind": "something new", "host": "gpu01"}, {"kind": "something new"}, {"kind": "note", "host": ""}]
    text = "".join(json.dumps(one) + "\n" for one in [*wrong, *fine])
    _, run = read_all(tmp_path, whole(tmp_path / "a") + text.encode())
    assert run.damaged == len(wrong)
    assert [one["kind"] for one in run.said] == ["something new", "note"]
    assert run.hosts[0].result == "failed"


NAMES = ("kind", "host", "t", "at", "plan", "role", "steps", "status", "results", "how", "hosts", "run", "facts")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(HOSTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=6,
)
KINDS = ("run began", "observed", "role started", "attached", "role finished", "host ended", "run ended", "note")
RECORDS = st.fixed_dictionaries(
    {"kind": st.sampled_from(KINDS)}, optional={name: VALUES for name in NAMES if name != "kind"}
)


@settings(deadline=None, max_examples=60)
@given(st.lists(RECORDS.map(lambda one: json.dumps(one).encode()) | st.binary(max_size=40), max_size=8))
def test_no_file_whatever_is_in_it_raises(rows: list[bytes]):
    with tempfile.TemporaryDirectory() as place:
        summary, run = read_all(Path(place), b"\n".join(rows))
        assert summary.run == run.run == "run1"
        read_all(Path(place), whole(Path(place) / "a") + b"\n".join(rows))


def test_a_file_of_facts_is_never_looked_for_outside_the_run(tmp_path: Path):
    rows = [
        {"kind": "observed", "host": "gpu01", "plan": {}, "facts": name} for name in ("/etc/x", "../../x", "facts/a")
    ]
    _, run = read_all(tmp_path, "\n".join(map(json.dumps, rows)).encode())
    assert run.hosts[0].facts == (tmp_path / "runs" / "run1" / "facts" / "a",)


def test_run_is_found_by_id_prefix_or_as_the_last(tmp_path: Path):
    for minute, run in enumerate(("20240501t1000-aa", "20240501t1000-bb", "20240502t1000-cc")):
        record(tmp_path, 0, run=run, began=at(minute))
    found = {name: Runs(tmp_path).find(name).run[-2:] for name in ("last", "20240502", "20240501t1000-a")}
    assert found == {"last": "cc", "20240502": "cc", "20240501t1000-a": "aa"}
    record(tmp_path, 0, run="20240501t1000-b", began=at(9))
    assert Runs(tmp_path).find("20240501t1000-b").run == "20240501t1000-b", "a whole id, though another begins so"


@pytest.mark.parametrize("name", ["", ".", "..", "../runs", "/", "20240501t1000-xx", "20240501"])
def test_unknown_or_ambiguous_run_is_bad_input(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="no run is recorded"):
        Runs(tmp_path).find(name)
    for run in ("20240501t1000-aa", "20240501t1000-bb"):
        record(tmp_path, 0, run=run)
    with pytest.raises(InputError, match=r"2 run IDs begin|did you mean|the latest is "):
        Runs(tmp_path).find(name)


def test_the_sets_of_the_last_run_are_by_result(tmp_path: Path):
    record(tmp_path, 1, *ENDED, events.HostEnded("gpu09", "locked"), hosts=(*HOSTS, "gpu09"))
    expected = {
        "failed": {"gpu02", "gpu03", "gpu04"},
        "locked": {"gpu09"},
        "unreachable": {"gpu03"},
        "changed": {"gpu01"},
        "pending": {"gpu05"},
        "untouched": {"gpu08"},
        "stopped": {"gpu07"},
    }
    assert named_sets(tmp_path, INVENTORY) == expected
    assert set(SETS) == set(expected)


@pytest.mark.parametrize("pattern", ["@failed", "gpu01,!@changed", "all:& @unreachable"])
def test_a_set_of_the_last_run_without_a_run_is_bad_input(pattern: str):
    with pytest.raises(InputError, match="no run on this inventory is recorded"):
        check_sets(pattern, {}, ["rack3"])


@pytest.mark.parametrize("pattern", ["@rack3", "failed", "all", "@nonsense", "@failed"])
def test_other_patterns_are_none_of_its_business(pattern: str):
    check_sets(pattern, {}, ["rack3", "failed"])
    check_sets(pattern, {"failed": set()}, [])


def test_a_killed_run_has_its_hosts_in_the_set_of_the_failed(tmp_path: Path):
    record(tmp_path, None, *ENDED[:1], events.Note("gpu02", "x"), hosts=HOSTS)
    assert named_sets(tmp_path, INVENTORY)["failed"] == {"gpu02"}
    assert to_resume(tmp_path, INVENTORY).hosts == HOSTS[1:]


def test_only_runs_that_touch_this_inventory_count(tmp_path: Path):
    record(tmp_path, 1, *ENDED, run="mine", began=at(1), hosts=HOSTS)
    record(tmp_path, 0, run="plan", verb="plan", began=at(3))
    record(tmp_path, 0, run="other", inventory="/srv/other", began=at(4))
    assert named_sets(tmp_path, INVENTORY)["changed"] == {"gpu01"}
    assert named_sets(tmp_path, Path(INVENTORY) / ".." / "inventory")["changed"] == {"gpu01"}
    assert named_sets(tmp_path, "/srv/third") == {}
    record(tmp_path, 0, events.HostEnded("gpu02", "changed"), run="check", verb="verify", began=at(5))
    assert named_sets(tmp_path, INVENTORY)["changed"] == {"gpu02"}
    assert to_resume(tmp_path, INVENTORY).run == "mine", "a verify leaves nothing to resume"


def test_rest_is_resumed_with_the_options_of_its_run(tmp_path: Path):
    options = {"hosts": "all", "var": ["x_password=1"], "no_reboot": True}
    record(tmp_path, 1, *ENDED, hosts=HOSTS, options=options)
    left = to_resume(tmp_path, INVENTORY)
    assert left.hosts == ("gpu02", "gpu03", "gpu04", "gpu05", "gpu07", "gpu08")
    assert left.options == {"hosts": "all", "var": ["x_password=***"], "no_reboot": True}
    assert left.masked == ("var",)


ROLLOUT = (events.HostEnded("gpu01", "failed"), *(events.HostEnded(name, "untouched") for name in HOSTS[1:]))


def test_a_stopped_rollout_is_resumed_after_a_repair(tmp_path: Path):
    record(tmp_path, 1, *ROLLOUT, run="rollout", began=at(1), hosts=HOSTS)
    record(tmp_path, 0, events.HostEnded("gpu01", "changed"), run="repair", began=at(2), hosts=["gpu01"])
    assert to_resume(tmp_path, INVENTORY).run == "rollout"
    assert to_resume(tmp_path, INVENTORY, "rollout").hosts == HOSTS
    assert to_resume(tmp_path, INVENTORY, "roll").run == "rollout", "as every other verb finds a run"
    record(tmp_path, 0, *(events.HostEnded(name, "changed") for name in HOSTS), run="all", began=at(3), hosts=HOSTS)
    with pytest.raises(InputError, match="the run all left every host as desired"):
        to_resume(tmp_path, INVENTORY)


def test_it_is_not_guessed_which_of_two_runs_is_meant(tmp_path: Path):
    record(tmp_path, 1, *ROLLOUT, run="rollout", began=at(1), hosts=HOSTS)
    record(tmp_path, 1, events.HostEnded("gpu01", "failed"), run="repair", began=at(2), hosts=["gpu01"])
    with pytest.raises(InputError) as refused:
        to_resume(tmp_path, INVENTORY)
    assert str(refused.value) == (
        "--resume: two runs are unfinished: rollout was stopped; repair left these hosts to do: gpu01. Resume one of "
        "them: `invoke provision --resume rollout` or `invoke provision --resume repair`"
    )
    assert to_resume(tmp_path, INVENTORY, "repair").hosts == ("gpu01",)


def test_hosts_that_left_the_inventory_keep_no_run_open(tmp_path: Path):
    record(tmp_path, 1, events.HostEnded("gpu01", "unreachable"), run="old", began=at(1), hosts=["gpu01"])
    record(tmp_path, 0, events.HostEnded("gpu02", "changed"), run="new", began=at(2), hosts=["gpu02"])
    assert resumable(tmp_path, INVENTORY, known={"gpu01", "gpu02"}).run == "old"
    with pytest.raises(InputError, match="the run new left every host as desired"):
        resumable(tmp_path, INVENTORY, known={"gpu02"})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("rollouts", "--resume: no run is named 'rollouts'; did you mean 'rollout'?"),
        ("check", "--resume: the run check is a `verify` run, not a provision run; to select its remaining hosts, pass "
         "--hosts '@failed:check' or '@untouched:check'"),
        ("other", "--resume: the run other used another inventory; pass --inventory /srv/other"),
        ("done", "--resume: nothing to resume: the run done left every host as desired"),
    ],
)  # fmt: skip
def test_a_run_that_cannot_be_resumed_says_why(tmp_path: Path, name: str, sentence: str):
    record(tmp_path, 1, *ROLLOUT, run="rollout", hosts=HOSTS)
    record(tmp_path, 1, *ROLLOUT, run="check", verb="verify", hosts=HOSTS)
    record(tmp_path, 1, *ROLLOUT, run="other", inventory="/srv/other", hosts=HOSTS)
    record(tmp_path, 0, events.HostEnded("gpu01", "changed"), run="done", hosts=["gpu01"])
    with pytest.raises(InputError) as refused:
        to_resume(tmp_path, INVENTORY, name)
    assert str(refused.value) == sentence


def test_the_sets_of_a_named_run_are_selected(tmp_path: Path):
    record(tmp_path, 1, *ROLLOUT, run="20240501t100100-ab12", began=at(1), hosts=HOSTS)
    record(tmp_path, 0, events.HostEnded("gpu01", "changed"), run="20240501t100200-cd34", began=at(2), hosts=["gpu01"])
    fleet = {name: Host(name) for name in HOSTS}
    inventory = Inventory(fleet, {ALL: Group(ALL, HOSTS, (), 0)})

    def chosen(pattern: str) -> list[str]:
        sets = sets_of(pattern, tmp_path, INVENTORY, [*HOSTS, ALL])
        return [each.name for each in select(inventory, pattern, sets)]

    assert chosen("@failed:ab12") == ["gpu01"]
    assert chosen("@untouched:ab12") == [*HOSTS[1:]]
    assert chosen("all,!@untouched:20240501t100100-ab12") == ["gpu01"]
    assert chosen("@failed:ab12:gpu03") == ["gpu01", "gpu03"], "a colon parts terms, as in Ansible"
    assert chosen("@changed:gpu03") == ["gpu01", "gpu03"], "a host is not a run"
    with pytest.raises(InputError, match=r"^--hosts: no run is named 'ab13'; "):
        chosen("@failed:ab13")


def test_each_set_can_be_named():
    assert SETS.keys() == set(RUN_SETS)


def test_nothing_to_resume_is_bad_input(tmp_path: Path):
    with pytest.raises(InputError, match="no provision run"):
        to_resume(tmp_path, INVENTORY)
    record(tmp_path, 0, events.HostEnded("gpu01", "changed"), events.HostEnded("gpu02", "as desired"))
    with pytest.raises(InputError, match="left every host as desired"):
        to_resume(tmp_path, INVENTORY)


def test_run_without_file_locks_is_recognised_by_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import socket

    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    here = f"ann@{socket.gethostname()}"
    journals: list[Journal] = [
        begin(tmp_path, run="mine", operator=here),
        begin(tmp_path, run="gone", operator=here, pid=2**22 + 1),
        begin(tmp_path, run="elsewhere", operator="ann@elsewhere", pid=os.getpid()),
    ]
    states = {path.name: summary_of(path).state for path in (tmp_path / "runs").iterdir()}
    assert states == {"mine": "running", "gone": "interrupted", "elsewhere": "interrupted"}
    for journal in journals:
        journal.close()
