"""What a worker tells: masked, numbered, kept and sent in one order; nothing once it has left."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hostwright.apply import events
from hostwright.apply.events import Delivering, HostEnded, Note, Observed, RoleFinished, RoleProgress, Waiting
from hostwright.apply.executors.cluster.messages import Claim, Done, Message, Reported
from hostwright.apply.executors.cluster.reporting import (
    SHOWN_S,
    AttemptRecord,
    Reporter,
    folder_of,
    forget,
    kept,
    masked,
)
from hostwright.apply.host.outcome import Outcome
from hostwright.apply.jobs.scripting import Progress, Retry
from hostwright.apply.journal.redaction import Redactor
from hostwright.common.errors import (
    Acceptance,
    FailedStep,
    HostError,
    NotAccepted,
    SeveralFailed,
    StepFailed,
)
from hostwright.common.secret import Secret
from hostwright.plan.model import Answer, Change, Facts, Plan, Probe, RolePlan, RoleResult, Step, StepResult
from tests.unit.support.gated import WAIT_S
from tests.unit.support.hostjobs import until

SECRET = "hunter22"
RUN = "20270101t000000-abcd"
CHANGE = Change("file /etc/motd", "absent", f"text {SECRET}", (Step(f"echo {SECRET}"),), diff=f"+{SECRET}")
PLAN = Plan("gpu01", "hello", (RolePlan("hello", (), (CHANGE,)),))
RESULT = RoleResult("hello", 0, 1.0, (StepResult(0, "file /etc/motd", 0, 1.0, f"it says {SECRET}"),))
PROBE, LATE = Probe("cat /etc/motd"), Probe("df /")
FACTS = Facts({PROBE: Answer(0, f"motd {SECRET}"), LATE: Answer(137, SECRET, late_s=30)})
STEP = FailedStep("hello", "file", "false", 1, (f"tail {SECRET}",))


class Sent(list[Message]):
    def send(self, message: dict[str, object]) -> None:
        self.append(Message.unpacked(message["body"]))  # type: ignore[arg-type]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def telling(tmp_path: Path, *, secrets: tuple[str, ...] = (), attempt: str = "a1") -> tuple[Reporter, Sent, Clock]:
    sent, clock = Sent(), Clock()
    record = AttemptRecord.begin(RUN, "gpu01", attempt, tmp_path)
    voice = Reporter("gpu01", attempt, "tls://a:1", send=sent.send, record=record, clock=clock)
    voice.text = Redactor(Secret(text) for text in secrets).text
    return voice, sent, clock


def test_what_is_told_is_numbered_sent_and_kept_in_one_order(tmp_path: Path):
    voice, sent, _ = telling(tmp_path)
    voice.ask("w1", b"key")
    voice(Waiting("gpu01", "its answers"))
    voice(Observed("gpu01", PLAN, FACTS))
    voice(RoleFinished("gpu01", "hello", RESULT))
    voice.end(Outcome("gpu01", PLAN), None)
    assert [message.number for message in sent] == [1, 0, 2, 3, 4]
    assert kept(RUN, {}, tmp_path) == [message for message in sent if message.number]
    assert isinstance(sent[0].body, Claim)
    assert isinstance(sent[-1].body, Done)
    assert {(message.host, message.attempt, message.worker) for message in sent} == {("gpu01", "a1", "tls://a:1")}


def test_messages_of_many_threads_keep_one_order_and_lose_none(tmp_path: Path):
    voice, sent, _ = telling(tmp_path)
    threads = [
        threading.Thread(target=lambda: [voice(Note("gpu01", str(number))) for number in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [message.number for message in sent] == list(range(1, 201))
    assert kept(RUN, {}, tmp_path) == list(sent)


def test_how_a_host_ended_is_said_once_at_the_very_end(tmp_path: Path):
    voice, sent, _ = telling(tmp_path)
    voice(HostEnded("gpu01", "changed"))
    assert sent == []
    voice.end(None, HostError("gpu01", "no room"))
    voice.end(Outcome("gpu01", PLAN), None)
    voice(Note("gpu01", "late"))
    (message,) = sent
    assert isinstance(message.body, Done)
    assert str(message.body.error) == "gpu01: no room"


def test_after_leaving_nothing_is_told_or_kept(tmp_path: Path):
    voice, sent, _ = telling(tmp_path)
    voice(Note("gpu01", "before"))
    voice.leave()
    voice(Note("gpu01", "after"))
    voice.ask("w1", b"")
    voice.end(Outcome("gpu01", PLAN), None)
    assert len(sent) == 1
    assert len(kept(RUN, {}, tmp_path)) == 1


def progress(number: int | None, line: str, retry: Retry | None = None) -> RoleProgress:
    return RoleProgress("gpu01", "hello", Progress(number, "step", line, retry))


def test_how_far_a_step_is_is_told_at_another_step_and_else_now_and_then(tmp_path: Path):
    voice, sent, clock = telling(tmp_path)
    again = Retry(1, 5.0, "mirror")
    for event in (progress(0, "a"), progress(0, "b"), progress(1, "c"), progress(1, "d"), progress(1, "e", again)):
        voice(event)
    clock.now_s += SHOWN_S
    voice(progress(1, "f", again))
    voice(progress(1, "g", again))
    lines = [
        message.body.event.progress.last_line
        for message in sent
        if isinstance(message.body, Reported) and isinstance(message.body.event, RoleProgress)
    ]
    assert lines == ["a", "c", "e", "f"]


def test_of_a_file_the_beginning_the_end_and_some_between_are_told(tmp_path: Path):
    voice, sent, clock = telling(tmp_path)
    for done in (1, 2, 3):
        voice(Delivering("gpu01", "hello", "a.deb", done, 10))
    clock.now_s += SHOWN_S
    voice(Delivering("gpu01", "hello", "a.deb", 4, 10))
    voice(Delivering("gpu01", "hello", "a.deb", 5, 10, "peer gpu02"))  # it comes from elsewhere now
    voice(Delivering("gpu01", "hello", "a.deb", 10, 10, "peer gpu02"))
    voice(Delivering("gpu01", "hello", "b.deb", 1, 10))
    shown = [(message.body.event.artifact, message.body.event.done_bytes) for message in sent]  # type: ignore[union-attr]
    assert shown == [("a.deb", 1), ("a.deb", 4), ("a.deb", 5), ("a.deb", 10), ("b.deb", 1)]
    assert [message.number for message in sent] == [0, 0, 0, 1, 0]  # the journal keeps what has arrived


EVENTS = [
    Observed("gpu01", PLAN, FACTS),
    RoleFinished("gpu01", "hello", RESULT),
    RoleProgress("gpu01", "hello", Progress(0, "step", f"line {SECRET}", Retry(1, 1.0, SECRET))),
    Note("gpu01", f"note {SECRET}"),
    events.Retrying("gpu01", "connection", 1, 2.0, f"reason {SECRET}"),
    events.Attached("gpu01", f"role {SECRET}", 1, f"job {SECRET}", f"run {SECRET}", SECRET),
]
ERRORS = [
    HostError("gpu01", f"failed: {SECRET}"),
    StepFailed("gpu01", f"failed: {SECRET}", STEP),
    SeveralFailed("gpu01", [StepFailed("gpu01", SECRET, STEP), HostError("gpu01", SECRET)]),
    NotAccepted("gpu01", f"because {SECRET}", (Acceptance("a", "failed", SECRET),), exit_status=3),
]


def all_of(value: object, seen: set[int] | None = None) -> str:
    """Everything that a value holds, as text, at whatever depth."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return ""
    seen.add(id(value))
    parts = [repr(value)]
    if isinstance(value, Facts):
        parts += [all_of(answer, seen) for answer in [*value.values(), *value.late.values()]]
    if isinstance(value, (list, tuple, set, frozenset)):
        parts += [all_of(each, seen) for each in value]
    if isinstance(value, dict):
        parts += [all_of(each, seen) for each in [*value, *value.values()]]
    if isinstance(value, BaseException):
        parts += [all_of(value.args, seen), all_of(vars(value), seen)]
    for name in getattr(type(value), "__slots__", ()) or ():
        parts.append(all_of(getattr(value, name, None), seen))
    return "\n".join(parts)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_no_event_leaves_a_worker_with_a_secret(tmp_path: Path, event):
    assert SECRET in all_of(event)
    voice, sent, _ = telling(tmp_path, secrets=(SECRET,))
    voice(event)
    (message,) = sent
    assert isinstance(message.body, Reported)
    assert SECRET not in all_of(message.body.event)
    assert type(message.body.event) is type(event)
    assert message.body.event.host == "gpu01"
    assert SECRET not in all_of(kept(RUN, {}, tmp_path))
    path = next(folder_of(RUN, tmp_path).iterdir())
    assert SECRET.encode() not in path.read_bytes()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_error_leaves_a_worker_with_a_secret(tmp_path: Path, error):
    assert SECRET in all_of(error)
    voice, sent, _ = telling(tmp_path, secrets=(SECRET,))
    voice.end(None, error)
    (message,) = sent
    assert isinstance(message.body, Done)
    told = message.body.error
    assert SECRET not in all_of(told)
    assert (type(told), told.host, told.exit_status) == (type(error), "gpu01", error.exit_status)  # type: ignore[union-attr]


def test_no_outcome_leaves_a_worker_with_a_secret(tmp_path: Path):
    voice, sent, _ = telling(tmp_path, secrets=(SECRET,))
    voice.end(Outcome("gpu01", PLAN, (RESULT,), Plan("gpu01", "hello")), None)
    assert SECRET not in all_of(sent[0])
    assert sent[0].body.outcome.word == "changed"  # type: ignore[union-attr]


def test_what_holds_no_secret_is_the_same_afterwards():
    for value in (PLAN, RESULT, *EVENTS, Outcome("gpu01", PLAN, (RESULT,))):
        assert masked(value, str) == value
    facts = masked(FACTS, str)
    assert (dict(facts), facts.late) == (dict(FACTS), FACTS.late)


def test_what_is_kept_when_an_attempt_has_left_is_all_that_there_will_be(tmp_path: Path):
    """Whoever takes over a run reads it then, while the work on the host still tells things."""
    voice, sent, _ = telling(tmp_path)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            voice(Note("gpu01", "still here"))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(sent) > 20, "it tells", WAIT_S)
    voice.leave()
    all_of_it = kept(RUN, {}, tmp_path)
    over.set()
    for thread in threads:
        thread.join(WAIT_S)
    voice.end(Outcome("gpu01", PLAN), None)
    assert kept(RUN, {}, tmp_path) == all_of_it == list(sent)


def test_an_attempt_that_ends_and_leaves_at_once_closes_its_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Closed twice, the second would be somebody else's file of this process."""
    voice, _, _ = telling(tmp_path)
    leaving = threading.Thread(target=voice.leave, daemon=True)
    closing: set[threading.Thread] = set()
    at_once: list[int] = []
    close = AttemptRecord.close

    def slow(record: AttemptRecord) -> None:
        closing.add(threading.current_thread())
        at_once.append(len(closing))
        if len(at_once) == 1:
            leaving.start()
            leaving.join(0.2)  # it waits until this one is through
        close(record)
        closing.remove(threading.current_thread())

    monkeypatch.setattr(AttemptRecord, "close", slow)
    voice.end(Outcome("gpu01", PLAN), None)
    leaving.join(WAIT_S)
    assert at_once == [1, 1]


# ---------------------------------------------------------------- the records


def test_only_what_is_not_known_is_asked_for(tmp_path: Path):
    for attempt in ("a1", "a2"):
        voice, _, _ = telling(tmp_path, attempt=attempt)
        for number in range(3):
            voice(Note("gpu01", str(number)))
    assert [(one.attempt, one.number) for one in kept(RUN, {"a1": 2}, tmp_path)] == [
        ("a1", 3), ("a2", 1), ("a2", 2), ("a2", 3),
    ]  # fmt: skip
    assert kept("20270101t000000-none", {}, tmp_path) == []


@pytest.mark.parametrize("cut", [1, 4, 10])
def test_a_record_whose_end_was_cut_off_is_read_up_to_there(tmp_path: Path, cut):
    voice, sent, _ = telling(tmp_path)
    for number in range(3):
        voice(Note("gpu01", str(number)))
    path = next(folder_of(RUN, tmp_path).iterdir())
    path.write_bytes(path.read_bytes()[:-cut])
    assert kept(RUN, {}, tmp_path) == list(sent[:2])


@pytest.mark.parametrize("damage", [b"xx", b"cno_such_module\nThing\n.", b"\x8c\x02\xff\xff.", b"I1x\n."])
def test_a_damaged_record_is_read_up_to_the_damage(tmp_path: Path, damage):
    voice, sent, _ = telling(tmp_path)
    voice(Note("gpu01", "0"))
    path = next(folder_of(RUN, tmp_path).iterdir())
    path.write_bytes(path.read_bytes() + len(damage).to_bytes(4, "big") + damage + b"\xff\xff\xff\xff")
    assert kept(RUN, {}, tmp_path) == list(sent)


def test_after_half_a_message_nothing_is_kept_that_could_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A full disk takes part of a write, and has room again a moment later."""
    import os

    write, voice, sent = os.write, *telling(tmp_path)[:2]
    voice(Note("gpu01", "0"))
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:9]))
    voice(Note("gpu01", "1"))
    monkeypatch.undo()
    voice(Note("gpu01", "2"))
    assert len(sent) == 3
    assert kept(RUN, {}, tmp_path) == list(sent[:1])


def test_a_record_that_cannot_be_kept_stops_nothing(tmp_path: Path):
    (tmp_path / "attempts").write_text("no directory")
    voice, sent, _ = telling(tmp_path)
    voice(Note("gpu01", "0"))
    assert len(sent) == 1
    assert kept(RUN, {}, tmp_path) == []


def test_records_are_forgotten_and_so_are_those_of_long_ago(tmp_path: Path):
    import os
    import time

    from hostwright.apply.executors.cluster.sites import KEPT_S

    for run in (RUN, "20260101t000000-old", "20270101t000000-other"):
        record = AttemptRecord.begin(run, "gpu01", "a1", tmp_path)
        record.close()
    long_ago_s = time.time() - KEPT_S - 60
    os.utime(folder_of("20260101t000000-old", tmp_path), (long_ago_s, long_ago_s))
    forget(RUN, tmp_path)
    assert [path.name for path in (tmp_path / "attempts").iterdir()] == ["20270101t000000-other"]


def test_records_are_their_users_alone(tmp_path: Path):
    voice, _, _ = telling(tmp_path)
    voice(Note("gpu01", "0"))
    folder = folder_of(RUN, tmp_path)
    assert {place.stat().st_mode & 0o777 for place in (folder, folder.parent)} == {0o700}
    assert next(folder.iterdir()).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("run", ["../x", "", "a/b", ".hidden"])
def test_what_is_no_run_is_no_folder(tmp_path: Path, run):
    with pytest.raises(ValueError, match="not a run ID"):
        folder_of(run, tmp_path)
