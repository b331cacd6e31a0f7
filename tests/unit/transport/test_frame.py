"""Frames of commands: the command's own output, however it is split, in any shell."""

from __future__ import annotations

import itertools
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.transport.frame import Frame, Stream

NONCE = "0123456789abcdef01234567"
BEGIN, END = f"hwbegin-{NONCE}".encode(), f"hwend-{NONCE} ".encode()


def fed(stream: Stream, data: bytes, cuts: list[int]) -> bytes:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [stream.feed(data[start:end]) for start, end in itertools.pairwise(places)]
    return b"".join(pieces) + stream.rest()


TEXTS = st.binary(max_size=40) | st.sampled_from([b"hwbegin-", b"hwend-", BEGIN[:-1], END[:9], b"h", b"\0\033[K"])


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 255), st.lists(st.integers(0, 500), max_size=6))
def test_only_what_stands_in_the_frame_is_the_commands(
    noise: bytes, own: bytes, after: bytes, status: int, cuts: list[int]
) -> None:
    stream = Stream(NONCE)
    assert fed(stream, noise + BEGIN + own + END + b"%d." % status + after, cuts) == own
    assert (stream.noise, stream.noise_bytes, stream.status) == (noise, len(noise), status)


@given(TEXTS, TEXTS, st.lists(st.integers(0, 500), max_size=6))
def test_a_command_that_is_cut_off_has_all_that_it_printed_and_no_status(
    noise: bytes, own: bytes, cuts: list[int]
) -> None:
    stream = Stream(NONCE)
    assert fed(stream, noise + BEGIN + own, cuts) == own
    assert stream.status is None


@given(TEXTS, st.lists(st.integers(0, 500), max_size=6))
def test_without_a_beginning_all_is_noise(noise: bytes, cuts: list[int]) -> None:
    stream = Stream(NONCE)
    assert fed(stream, noise, cuts) == b""
    assert (stream.noise, stream.begun) == (noise, False)


def test_a_whole_line_is_passed_on_at_once() -> None:
    stream = Stream(NONCE)
    stream.feed(BEGIN)
    assert stream.feed(b"50 %\n") == b"50 %\n"


def test_the_command_line_is_one_that_all_shells_read_alike() -> None:
    line = Frame("echo 'it''s' \\ !! `id` %s\nexit").line
    head, inside, tail = re.split("'", line)
    assert not set("\\!\n") & set(inside)
    assert re.fullmatch(r"[\w/= -]+", head)
    assert tail == ""


@pytest.mark.parametrize("missing", [1, 9, 30])
def test_a_program_that_does_not_come_whole_is_not_run(missing: int) -> None:
    frame = Frame("echo rm -rf /tmp/mine")
    done = subprocess.run(
        ["/bin/sh", "-c", frame.line], input=frame.program[:-missing], capture_output=True, check=False
    )
    assert frame.stdout.feed(done.stdout) == b""
    assert frame.stdout.begun
    assert (done.returncode, frame.ended) == (1, False)


# Data of a malicious host


def test_an_end_without_a_status_ends_the_command_and_keeps_nothing() -> None:
    stream = Stream(NONCE)
    assert stream.feed(BEGIN + b"own" + END) == b"own"
    for _ in range(100):
        stream.feed(b"x" * 10_000)
    assert (stream.status, stream.rest()) == (255, b"")


def test_what_comes_outside_of_the_frame_is_counted_on_both_streams() -> None:
    frame = Frame("true")
    nonce = frame.program[-24:]
    frame.stdout.feed(b"noise" + b"hwbegin-" + nonce + b"hwend-" + nonce + b" 0.after")
    frame.stdout.feed(b"x" * 1000)
    frame.stderr.feed(b"y" * 1000)
    assert 2005 <= frame.noise_bytes + len(frame.rest()[1]) + 31 <= 2050


@pytest.mark.parametrize("piece", [BEGIN, BEGIN[:-1], END, END[:-1], b"h", b"\n"])
def test_a_stream_never_holds_more_than_a_mark(piece: bytes) -> None:
    for beginning in (b"", BEGIN):
        stream = Stream(NONCE)
        stream.feed(beginning)
        for _ in range(2000):
            stream.feed(piece)
        assert len(stream.rest()) <= len(END) + 4
        assert len(stream.noise) <= 4096
