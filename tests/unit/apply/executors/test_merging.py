"""A run whose machine died while workers worked: its journal gets what is missing, each once and in order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.events import HostEnded, Note, Observed, RoleFinished, RoleStarted, Witness
from hostwright.apply.executors.cluster.errand import Done, Knock, Message, Reported
from hostwright.apply.executors.merging import in_order, is_left, numbers, take_over
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import Runs, summary_of
from hostwright.apply.journal.writing import Journal
from hostwright.common.errors import ArtifactError, InputError, Unreachable
from hostwright.common.secret import Secret
from hostwright.plan.model import Answer, Facts, Plan, Probe, RoleResult

BEGAN = "2027-01-01T00:00:00.000+00:00"
RUN = "20270101t000000-abcd"
EMPTY = Plan("gpu01", "hello")
W1 = "tls://192.0.2.1:4000"


def at(second: int) -> str:
    return f"2027-01-01T00:00:{second:02}.000+00:00"


def message(body: Any, number: int, *, host: str = "gpu01", attempt: str = "a1", second: int = 0) -> Message:
    told = body if isinstance(body, (Knock, Done)) else Reported(body)
    return Message(host, attempt, W1, number, at(second or number), told)


def journal(root: Path, **options: object) -> Journal:
    header = RunHeader(
        RUN, "provision", ("gpu01", "gpu02"), "inventory", options or {"scheduler": "tls://a:1"}, began=BEGAN
    )
    return Journal.begin(root, header, secrets=[], on_trouble=pytest.fail)


def records(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "runs" / RUN / "journal.jsonl").read_text().splitlines()]


def left(root: Path) -> None:
    """A run that died after a worker had told two things of one host."""
    dying = journal(root)
    dying(Observed("gpu01", EMPTY, witness=Witness(W1, "a1", 2)))
    dying(RoleStarted("gpu01", "hello", 1, "job-1", witness=Witness(W1, "a1", 3)))
    dying.close()


FINISHED = RoleFinished("gpu01", "hello", RoleResult("hello", 0, 2.0))
KEPT = [
    message(Knock("w1", b""), 1),
    message(Observed("gpu01", EMPTY), 2),
    message(RoleStarted("gpu01", "hello", 1, "job-1"), 3),
    message(FINISHED, 4, second=40),
    message(Done(Outcome("gpu01", EMPTY, (RoleResult("hello", 0, 2.0),), EMPTY)), 5, second=41),
]


def test_what_is_missing_is_added_once_with_its_time_and_the_host_has_ended(tmp_path: Path):
    left(tmp_path)
    run = Runs(tmp_path).find(RUN)
    assert is_left(run)
    asked: list[Any] = []

    def ask(name: str, known: Any) -> list[Message]:
        asked.append((name, dict(known)))
        return KEPT + KEPT  # two workers of one machine find the same records

    assert take_over(run, ask, secrets=[], warn=pytest.fail) == 2
    assert asked == [(RUN, {"a1": 3})]
    added = records(tmp_path)[3:]
    assert [(record["kind"], record["at"], record["t"]) for record in added] == [
        ("role finished", at(40), 40.0),
        ("host ended", at(41), 41.0),
    ]
    assert added[1]["result"] == "changed"
    assert added[0]["witness"] == {"worker": W1, "attempt": "a1", "number": 4}
    loaded = Runs(tmp_path).load(RUN)
    (one, two) = loaded.hosts
    assert (one.result, two.result) == ("changed", "untouched")
    assert [(role.role, role.status) for role in one.roles] == [("hello", 0)]
    assert take_over(Runs(tmp_path).find(RUN), ask, secrets=[], warn=pytest.fail) == 0
    assert len(records(tmp_path)) == 5


def test_facts_go_into_files_of_their_own_and_secrets_are_masked(tmp_path: Path):
    left(tmp_path)
    facts = Facts({Probe("cat /etc/motd"): Answer(0, "hello")})
    told = [message(Observed("gpu01", EMPTY, facts), 4), message(Note("gpu01", "token hunter22"), 5)]
    take_over(Runs(tmp_path).find(RUN), lambda *_: told, secrets=[Secret("hunter22")], warn=pytest.fail)
    folder = tmp_path / "runs" / RUN
    assert [path.name for path in (folder / "facts").iterdir()] == ["gpu01.before.json.gz"]
    assert "hunter22" not in (folder / "journal.jsonl").read_text()


def test_a_line_that_the_death_cut_off_is_left_behind_whole_ones(tmp_path: Path):
    left(tmp_path)
    file = tmp_path / "runs" / RUN / "journal.jsonl"
    file.write_text(file.read_text() + '{"kind": "note", "host": "gpu')
    take_over(Runs(tmp_path).find(RUN), lambda *_: KEPT, secrets=[], warn=pytest.fail)
    loaded = Runs(tmp_path).load(RUN)
    assert (loaded.damaged, loaded.hosts[0].result) == (1, "changed")


def test_a_run_in_progress_is_not_touched(tmp_path: Path):
    going = journal(tmp_path)
    run = Runs(tmp_path).find(RUN)
    assert not is_left(run)
    with pytest.raises(InputError, match="still in progress"):
        take_over(run, lambda *_: KEPT, secrets=[], warn=pytest.fail)
    going.close()
    assert len(records(tmp_path)) == 1


def test_only_a_run_of_a_cluster_that_did_not_end_is_left_behind(tmp_path: Path):
    assert is_left(summary_of(tmp_path / "runs" / RUN)) is False
    with journal(tmp_path):
        pass
    assert not is_left(Runs(tmp_path).find(RUN))
    other = tmp_path / "other"
    journal(other, hosts="all").close()
    assert not is_left(Runs(other).find(RUN))


def test_a_record_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    left(tmp_path)
    run = Runs(tmp_path).find(RUN)
    warned: list[str] = []
    import os

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    take_over(run, lambda *_: KEPT, secrets=[], warn=warned.append)
    assert len(warned) == 1
    assert "No space left" in warned[0]


@pytest.mark.parametrize(
    ("error", "result", "sentence"),
    [
        (Unreachable("gpu01", "no route"), "unreachable", "no route"),
        (ArtifactError("cuda.run is missing"), "failed", "cuda.run is missing"),
    ],
)
def test_how_a_host_failed_is_recorded(error, result, sentence):
    ((_, event),) = in_order([message(Done(error=error), 1)], {}, ())
    assert event == HostEnded("gpu01", result, sentence, witness=Witness(W1, "a1", 1))


def test_hosts_that_have_ended_in_the_journal_get_nothing_more():
    assert in_order(KEPT, {}, {"gpu01"}) == []


def test_attempts_come_in_the_order_in_which_they_began():
    later = [message(Note("gpu01", "second"), 1, attempt="a0", second=30)]
    earlier = [message(Note("gpu01", "first"), 1, attempt="a9", second=10)]
    assert [event.text for _, event in in_order(later + earlier, {}, ())] == ["first", "second"]  # type: ignore[attr-defined]


ATTEMPTS = st.dictionaries(st.sampled_from(["a1", "a2", "a3"]), st.integers(1, 6), max_size=3)


@given(ATTEMPTS, ATTEMPTS, st.randoms())
def test_whatever_is_known_and_in_whatever_order_it_comes_nothing_is_missing_or_twice(kept, known, random):
    told = [
        message(Note("gpu01", f"{attempt} {number}"), number, attempt=attempt, second=10 * int(attempt[1]) + number)
        for attempt, most in kept.items()
        for number in range(1, most + 1)
    ]
    mixed = told * 2
    random.shuffle(mixed)
    merged = [event.text for _, event in in_order(mixed, known, ())]  # type: ignore[attr-defined]
    expected = [
        f"{attempt} {number}"
        for attempt in sorted(kept)
        for number in range(known.get(attempt, 0) + 1, kept[attempt] + 1)
    ]
    assert merged == expected


def test_numbers_are_read_from_lines_of_any_kind(tmp_path: Path):
    file = tmp_path / "journal.jsonl"
    lines = [
        {"kind": "note", "witness": {"attempt": "a1", "number": 3}},
        {"kind": "note", "witness": {"attempt": "a1", "number": 2}},
        {"kind": "note", "witness": {"attempt": "a2", "number": "7"}},
        {"kind": "note", "witness": [1]},
        {"kind": "note"},
    ]
    file.write_text("\n".join(itertools.chain(map(json.dumps, lines), ['{"witness": cut'])))
    assert numbers(file) == {"a1": 3}
    assert numbers(tmp_path / "none") == {}
