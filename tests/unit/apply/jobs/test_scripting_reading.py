"""A role's log, read back in pieces of any size."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.apply.jobs import scripting, transient
from hostwright.apply.jobs.scripting import LogReader
from hostwright.apply.jobs.transient import reason
from hostwright.plan.model import RoleResult
from tests.unit.support.known import KNOWN
from tests.unit.support.work import calls

DNS = "Temporary failure resolving 'mirror.example'"

LOG = (
    "\nNONCE begin 0\nü 1/2\n\n\nNONCE end 0 0 1500\n"
    f"\nNONCE begin 1\n{DNS}\n\nNONCE retry 1 1 5.125\nanother try\n\nNONCE end 1 0 7000\n"
    "\nNONCE begin 2\nhalf\nNONCE end 9"
).encode()


def read(log: bytes, sizes: list[int]) -> tuple[LogReader, RoleResult]:
    """A log read in pieces, each watch going on where the one before broke."""
    reader = LogReader("cuda", ["a", "b", "c"], "NONCE")
    for size in [*sizes, len(log)]:
        rest = log[reader.bytes :]
        reader.feed(rest[:size])
    return reader, reader.result(137)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=60))
def test_a_log_reads_the_same_in_any_pieces(sizes):
    reader, result = read(LOG, sizes)
    assert result == read(LOG, [])[1]
    assert reader.bytes == len(LOG)
    assert [(step.what, step.status, step.duration_s, step.tries) for step in result.steps] == [
        ("a", 0, 1.5, 1),
        ("b", 0, 7.0, 2),
        ("c", None, 0.0, 1),
    ]
    assert result.steps[0].output == "ü 1/2"
    assert result.steps[1].output == f"{DNS}\n\nhostwright: transient failure, retrying in 5 s\nanother try"
    assert result.steps[2].output == "half\nNONCE end 9"


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(0, 50), max_size=20))
def test_no_output_breaks_the_reader(noise, sizes):
    log = b"NONCE begin 0\n" + noise + b"\n\nNONCE end 0 4 10\n"
    reader, result = read(log, sizes)
    assert [(step.number, step.status) for step in result.steps] == [(0, 4)]
    assert reader.bytes == len(log)


def test_whom_a_step_waits_for_is_seen_while_it_runs():
    reader = LogReader("cuda", ["a", "b"], "NONCE")
    reader.feed(b"NONCE begin 0\n")
    assert (
        reader.feed(b"\nNONCE waits 0 dpkg's lock, held by apt (pid 7)\n").waits == "dpkg's lock, held by apt (pid 7)"
    )
    assert reader.feed(b"more\n").waits == "dpkg's lock, held by apt (pid 7)"
    assert reader.feed(b"\nNONCE waits 0 \x1b[31mred\n").waits == "dpkg's lock, held by apt (pid 7)"
    assert reader.feed(b"\nNONCE end 0 0 10\nNONCE begin 1\n").waits == ""
    assert reader.feed(b"\nNONCE waits 0 dpkg's lock, held by apt (pid 7)\n").waits == ""


def test_a_retry_is_seen_while_its_step_runs():
    reader = LogReader("cuda", ["packages"], "NONCE", lambda text: reason(KNOWN.retry_rules, text))
    assert reader.feed(b"NONCE begin 0\n").retry is None
    seen = reader.feed(f"Get:1\nErr:1\n  {DNS}\nE: failed\n\nNONCE retry 1 0 5.125\n".encode())
    assert seen.retry == scripting.Retry(1, 5.125, DNS)
    assert (seen.number, seen.what) == (0, "packages")
    second = reader.feed(b"E: Hash Sum mismatch\n\nNONCE retry 2 0 10.000\n").retry
    assert second == scripting.Retry(2, 10.0, "E: Hash Sum mismatch")
    assert reader.feed(b"\nNONCE end 0 0 20000\n").retry is None
    assert [(step.tries, step.duration_s) for step in reader.results] == [(3, 20.0)]


def test_a_retry_that_no_step_announces_is_output():
    reader = LogReader("cuda", [], "NONCE")
    assert reader.feed(b"NONCE retry 1 0 5.125\nNONCE end 0 0 1\n").retry is None
    assert reader.results == []


def test_progress_shows_the_last_line_as_a_terminal_would():
    reader = LogReader("cuda", ["a"], "NONCE")
    assert reader.feed(b"NONCE begin 0\n 10%\r 50%\r 99%\n").last_line == "99%"


def test_endless_output_is_kept_bounded():
    reader = LogReader("cuda", ["a"], "NONCE")
    reader.feed(b"NONCE begin 0\n")
    for _ in range(40):
        reader.feed(b"x" * 99 + b"\n" + b"y" * scripting.OUTPUT_CAP_BYTES)
    reader.feed(b"\nlast\n\nNONCE end 0 0 1\n")
    output = reader.results[0].output
    assert len(output) <= 2 * scripting.OUTPUT_CAP_BYTES
    assert output.endswith("last")


def test_of_a_long_output_the_first_error_and_the_last_lines_are_kept():
    reader = LogReader("cuda", ["a"], "NONCE")
    reader.feed(b"NONCE begin 0\ntar: write: No space left on device\n")
    for number in range(20_000):
        reader.feed(b"line %d of many that say nothing of it\n" % number)
    reader.feed(b"make: *** [all] Error 2\n\nNONCE end 0 2 1\n")
    output = reader.results[0].output
    assert len(output) <= scripting.OUTPUT_CAP_BYTES
    assert output.endswith("line 19999 of many that say nothing of it\nmake: *** [all] Error 2")
    failure = KNOWN.classify(output)
    assert failure is not None
    assert failure.evidence == "tar: write: No space left on device"


@pytest.mark.parametrize(
    "text", ["NONCE begin 0 trailing", " NONCE begin 0", "NONCEbegin 0", "NONCE begin 1234567", "NONCE begin ٣"]
)
def test_only_a_whole_line_is_a_marker(text):
    reader = LogReader("cuda", ["a"], "NONCE")
    assert reader.feed(text.encode() + b"\n").number is None


# What a host that lies writes into its log


LIES = {
    "newlines": b"\n",
    "no newline": b"x",
    "carriage returns": b"\r",
    "begins": b"NONCE begin 0\n",
    "ends": b"NONCE end 0 0 1\n",
    "retries": b"NONCE retry 1 0 5.125\n",
    "halves of marks": b"NONCE begin ",
    "no text": b"\xff\xfe\n",
    "escapes": b"\x1b[2J\x1b]0;x\x07\n",
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_four_mebibytes_of_anything_are_read_in_one_pass(lie):
    """A list that loses its lines from the middle, or a line that is joined again for each piece, takes hours here."""
    reader = LogReader("cuda", ["a"], "NONCE", lambda _: "the mirror is away")
    log = b"NONCE begin 0\n" + lie * (4 * 2**20 // len(lie))
    for start in range(0, len(log), 2**20):
        reader.feed(log[start : start + 2**20])
    kept = reader.result(1).steps
    assert reader.bytes == len(log)
    assert len(kept) == 1
    assert len(kept[0].output) <= 2 * scripting.OUTPUT_CAP_BYTES


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_the_work_grows_with_the_log_and_not_faster(lie):
    def read_in_drops(size: int) -> int:
        reader = LogReader("cuda", ["a"], "NONCE")
        log = lie * (size // len(lie))
        return calls(lambda: [reader.feed(log[start : start + 7]) for start in range(0, len(log), 7)])

    assert read_in_drops(40_000) < 4.2 * read_in_drops(10_000)


def test_why_a_step_is_tried_again_is_looked_for_only_as_often_as_it_may_be_tried():
    texts: list[str] = []
    reader = LogReader("cuda", ["a"], "NONCE", lambda text: texts.append(text) or "")
    reader.feed(b"NONCE begin 0\n" + b"y\n" * 100_000)
    reader.feed(b"".join(b"NONCE retry %d 0 1.000\n" % number for number in range(1, 5000)))
    reader.feed(b"NONCE retry 1 0 1.000\n" * 5000)
    assert len(texts) == scripting.MOST_TRIES
    assert max(map(len, texts)) <= transient.TAIL_BYTES


def test_a_step_begins_and_ends_once_and_only_where_there_is_one():
    reader = LogReader("cuda", ["a", "b"], "NONCE")
    reader.feed(b"NONCE begin 0\nfirst\n\nNONCE end 0 0 1\nNONCE begin 0\nNONCE end 0 9 1\nNONCE begin 2\n")
    assert reader.feed(b"NONCE begin 1\nsecond\nNONCE end 0 0 1\n").number == 1
    reader.feed(b"NONCE end 1 3 2\nNONCE begin 1\nNONCE end 1 0 1\n")
    assert [(step.number, step.status, step.output) for step in reader.results] == [
        (0, 0, "first"),
        (1, 3, "second\nNONCE end 0 0 1"),
    ]
