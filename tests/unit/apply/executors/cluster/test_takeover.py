"""A run whose machine died while workers worked: its journal gets what is missing, each once and in order."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.events import EventOrigin, HostEnded, Note, Observed, RoleFinished, RoleStarted
from hostwright.apply.executors.choosing import is_left
from hostwright.apply.executors.cluster.messages import Claim, Done, Message, Reported
from hostwright.apply.executors.cluster.takeover import Recorded, in_order, recorded, take_over
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
SPREAD = {"executor": "dask", "scheduler": "tls://a:1"}
W1 = "tls://192.0.2.1:4000"


def at(second: int) -> str:
    return f"2027-01-01T00:00:{second:02}.000+00:00"


def message(body: Any, number: int, *, host: str = "gpu01", attempt: str = "a1", second: int = 0) -> Message:
    told = body if isinstance(body, (Claim, Done)) else Reported(body)
    return Message(host, attempt, W1, number, at(second or number), told)


def journal(root: Path, **options: object) -> Journal:
    header = RunHeader(
        RUN,
        "provision",
        ("gpu01", "gpu02"),
        "inventory",
        options or {"executor": "dask", "scheduler": "tls://a:1"},
        began=BEGAN,
    )
    return Journal.begin(root, header, secrets=[], on_trouble=pytest.fail)


def records(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "runs" / RUN / "journal.jsonl").read_text().splitlines()]


def left(root: Path) -> None:
    """A run that died after a worker had told two things of one host."""
    dying = journal(root)
    dying(Observed("gpu01", EMPTY, origin=EventOrigin(W1, "a1", 2)))
    dying(RoleStarted("gpu01", "hello", 1, "job-1", origin=EventOrigin(W1, "a1", 3)))
    dying.close()


FINISHED = RoleFinished("gpu01", "hello", RoleResult("hello", 0, 2.0))
KEPT = [
    message(Claim("w1", b""), 1),
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


def test_two_who_take_over_at_once_record_nothing_twice(tmp_path: Path):
    left(tmp_path)
    run = Runs(tmp_path).find(RUN)

    def ask(*_: object) -> list[Message]:
        with pytest.raises(InputError, match="still in progress"):
            take_over(run, lambda *_: KEPT, secrets=[], warn=pytest.fail)
        return KEPT

    take_over(run, ask, secrets=[], warn=pytest.fail)
    assert [record["witness"]["number"] for record in records(tmp_path)[1:]] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("error", "result", "sentence"),
    [
        (Unreachable("gpu01", "no route"), "unreachable", "no route"),
        (ArtifactError("cuda.run is missing"), "failed", "cuda.run is missing"),
    ],
)
def test_how_a_host_failed_is_recorded(error, result, sentence):
    ((_, event),) = in_order([message(Claim("w1", b""), 1), message(Done(error=error), 2)], {}, ())
    assert event == HostEnded("gpu01", result, sentence, origin=EventOrigin(W1, "a1", 2))


def test_hosts_that_have_ended_in_the_journal_get_nothing_more():
    assert in_order(KEPT, {}, {"gpu01"}) == []


# ---------------------------------------------------------------- several attempts at one host


def attempt_of(name: str, *bodies: Any, began: int) -> list[Message]:
    """An attempt that asked in this second, and what it told then, a second each."""
    told = (Claim("w1", b""), *bodies)
    return [message(body, number, attempt=name, second=began + number - 1) for number, body in enumerate(told, 1)]


def texts(missing: list[tuple[str, Any]]) -> list[str]:
    """What is told, in order: of notes their text, of an end its word."""
    return [getattr(event, "text", "") or event.result for _, event in missing]


CHANGED = Done(Outcome("gpu01", EMPTY, (RoleResult("hello", 0, 2.0),), EMPTY))
LOCKED = Done(error=Unreachable("gpu01", "its lock is lost"))
FIRST, SECOND = Note("gpu01", "first"), Note("gpu01", "second")


def test_attempts_come_in_the_order_in_which_they_began():
    later, earlier = attempt_of("a0", SECOND, began=30), attempt_of("a9", FIRST, began=10)
    assert texts(in_order(later + earlier, {}, ())) == ["first", "second"]


def test_how_a_host_ended_is_said_by_the_last_attempt_that_worked_on_it():
    """The first hung, was given up, and failed when it woke, since another had the lock; that one brought it to its
    end. By the time of what is missing, the first came last."""
    hung, other = attempt_of("a1", FIRST, SECOND, LOCKED, began=50), attempt_of("a2", CHANGED, began=30)
    known = {"a1": Recorded("gpu01", 2)}
    assert texts(in_order(hung + other, known, ())) == ["second", "changed"]


def test_nothing_of_an_attempt_comes_after_a_later_one_that_the_journal_has():
    hung, other = attempt_of("a1", FIRST, SECOND, LOCKED, began=5), attempt_of("a2", FIRST, CHANGED, began=30)
    known = {"a1": Recorded("gpu01", 2), "a2": Recorded("gpu01", 2)}
    assert texts(in_order(hung + other, known, ())) == ["changed"]


def test_an_attempt_of_which_nothing_was_heard_is_not_put_behind_one_that_came_after_it():
    """That its worker was lost is what the journal has of it. By the workers' clocks, it came later."""
    lost, other = attempt_of("a0", FIRST, LOCKED, began=50), attempt_of("a1", FIRST, CHANGED, began=20)
    known = {"a0": Recorded("gpu01", 0), "a1": Recorded("gpu01", 2)}
    assert texts(in_order(lost + other, known, ())) == ["changed"]


def test_an_attempt_that_only_asked_did_nothing_and_the_end_is_said_by_the_one_before():
    """The operator's machine was gone when the second asked; the first had only been slow."""
    slow, asked = attempt_of("a1", FIRST, CHANGED, began=5), attempt_of("a2", began=30)
    assert texts(in_order(asked + slow, {}, ())) == ["first", "changed"]


def test_what_a_worker_says_of_its_files_names_no_host_and_is_of_the_attempt():
    told = attempt_of("a1", Note("", "cannot listen"), SECOND, CHANGED, began=5)
    assert texts(in_order(told, {"a1": Recorded("", 2)}, ())) == ["second", "changed"]


ATTEMPTS = ("a1", "a2", "a3")
LENGTHS = st.dictionaries(st.sampled_from(ATTEMPTS), st.integers(2, 6), max_size=3)


@given(LENGTHS, st.data(), st.randoms())
def test_whatever_is_known_and_in_whatever_order_it_comes_nothing_is_missing_or_twice(kept, data, random):
    """And a taking over that is cut off itself is continued by the next."""
    told = [
        message
        for name, length in kept.items()
        for message in attempt_of(
            name, *(Note("gpu01", f"{name} {number}") for number in range(2, length + 1)), began=10 * int(name[1])
        )
    ]
    whole = [f"{name} {number}" for name in sorted(kept) for number in range(2, kept[name] + 1)]
    known: dict[str, Recorded] = {}
    done: list[str] = []
    while True:
        mixed = told * 2
        random.shuffle(mixed)
        missing = in_order(mixed, known, ())
        assert done + texts(missing) == whole
        if not missing:
            return
        written = missing[: data.draw(st.integers(1, len(missing)))]
        done += texts(written)
        for _, event in written:
            known.pop(event.origin.attempt, None)
            known[event.origin.attempt] = Recorded("gpu01", event.origin.number)


def test_what_a_journal_has_is_read_from_lines_of_any_kind(tmp_path: Path):
    file = tmp_path / "journal.jsonl"
    note = {"kind": "note", "host": "gpu01"}
    lines = [
        {**note, "at": at(1), "witness": {"attempt": "a1", "number": 3}},
        {**note, "at": at(2), "witness": {"attempt": "a0", "number": 2}},
        {**note, "at": at(3), "host": "", "witness": {"attempt": "a3", "number": 2}},
        {**note, "at": at(4), "witness": {"attempt": "a1", "number": 2}},
        {**note, "at": at(5), "witness": {"attempt": "a3", "number": 3}},
        {**note, "at": at(6), "witness": {"attempt": "a2", "number": "7"}},
        {**note, "at": at(7), "witness": [1]},
        note,
    ]
    file.write_text("\n".join(itertools.chain(map(json.dumps, lines), ['{"witness": cut'])))
    assert [*recorded(file).items()] == [
        ("a0", Recorded("gpu01", 2)),
        ("a1", Recorded("gpu01", 3)),
        ("a3", Recorded("gpu01", 3)),
    ]
    assert recorded(tmp_path / "none") == {}
