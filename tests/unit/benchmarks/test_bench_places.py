"""What replays, records and delays: the parts of places that decide something."""

from __future__ import annotations

import gzip
import marshal
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.places import answer, cable, recorder
from benchmarks.places.cable import Way

OLD, NEW, OWN = b"0" * 24, b"f" * 24, b"a" * 24
PROGRAM = b"#" + OLD + b"\nnonce=" + OLD[:20] + b"\nsha256=" + b"5" * 64 + b"\n"
ANSWER = b"zlib1g\t1:1.2.11\n" + OLD + b" 0 \n"


def kept(command: bytes, program: bytes, *out: bytes) -> dict[str, object]:
    turns = [(0, b"begin " + OLD, b""), (len(program), b"".join(out), b"end " + OLD)]
    return {"command": command, "inputs": [b"", program], "turns": turns, "status": 3}


def replay(
    folder: Path, entries: list[dict[str, object]], command: bytes, sent: bytes
) -> subprocess.CompletedProcess[bytes]:
    store = folder / "recording"
    by_question: dict[bytes, list[dict[str, object]]] = {}
    for entry in entries:
        by_question.setdefault(answer.masked(entry["command"]), []).append(entry)  # type: ignore[arg-type]
    store.write_bytes(marshal.dumps(by_question))
    words = [sys.executable, "-I", "-S", answer.__file__, str(store)]
    environment = {b"SSH_ORIGINAL_COMMAND": command, b"SSH_CONNECTION": b"127.0.0.1 5000 127.1.3.7 2201"}
    return subprocess.run(words, input=sent, capture_output=True, env=environment, check=False)


def test_an_answer_has_the_words_of_this_connection(tmp_path: Path) -> None:
    done = replay(tmp_path, [kept(b"run " + OLD, PROGRAM, ANSWER)], b"run " + NEW, PROGRAM.replace(OLD, NEW))
    assert (done.returncode, done.stdout, done.stderr) == (
        3, b"begin " + NEW + ANSWER.replace(OLD, NEW), b"end " + NEW,
    )  # fmt: skip


def test_what_the_host_compressed_is_unpacked_and_packed_again(tmp_path: Path) -> None:
    entry = kept(b"run " + OLD, PROGRAM, b"head " + OLD, gzip.compress(ANSWER), b" tail " + OLD)
    done = replay(tmp_path, [entry], b"run " + NEW, PROGRAM.replace(OLD, NEW))
    assert answer.unpacked(done.stdout) == b"begin " + NEW + b"head " + NEW + ANSWER.replace(OLD, NEW) + b" tail " + NEW


def test_a_program_that_the_client_packed_is_known_whatever_its_words_and_checksums_are(tmp_path: Path) -> None:
    def packed(word: bytes) -> bytes:
        return PROGRAM.replace(OLD, word) + gzip.compress(word, 0, mtime=0) + gzip.compress(b"probe\n" * 9, mtime=0)

    done = replay(tmp_path, [kept(b"run " + OLD, packed(OLD), ANSWER)], b"run " + NEW, packed(NEW))
    assert (done.returncode, done.stdout) == (3, b"begin " + NEW + ANSWER.replace(OLD, NEW))


def test_of_commands_that_begin_alike_that_is_taken_to_which_the_same_was_sent(tmp_path: Path) -> None:
    longer = PROGRAM[:-9] + b"another end of the program\n"
    entries = [kept(b"run " + OLD, longer, b"of the longer"), kept(b"run " + OLD, PROGRAM, b"of the shorter")]
    for sent, said in ((PROGRAM, b"of the shorter"), (longer, b"of the longer")):
        done = replay(tmp_path, entries, b"run " + NEW, sent.replace(OLD, NEW))
        assert done.stdout.endswith(said), done


@pytest.mark.parametrize(("command", "sent"), [(b"other", PROGRAM), (b"run " + NEW, b"something else")])
def test_a_question_that_nobody_recorded_is_kept(tmp_path: Path, command: bytes, sent: bytes) -> None:
    done = replay(tmp_path, [kept(b"run " + OLD, PROGRAM, ANSWER)], command, sent)
    assert done.returncode == answer.UNKNOWN_STATUS
    assert b"====" in (tmp_path / "recording.unknown").read_bytes()


def test_words_that_vary_end_in_the_number_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "vary").write_text("2026b-0+deb11u1 24684084")
    assert answer.own_words(str(tmp_path / "vary"), "127.1.3.7") == {
        b"2026b-0+deb11u1": b"2026b-0+d000775",
        b"24684084": b"24000775",
    }
    assert answer.own_words(str(tmp_path / "none"), "127.1.3.7") == {}


def test_what_is_said_before_the_program_and_after_it_is_told_apart() -> None:
    went = [("out", b"begin"), ("in", b"pro"), ("in", b"gram"), ("err", b"e"), ("out", b"an"), ("out", b"swer")]
    assert recorder.turns(went) == ([b"", b"program"], [(0, b"begin", b""), (7, b"answer", b"e")])


def test_chance_changes_nothing_of_a_recording() -> None:
    """A shell answers while the rest of its program comes; standard error comes when it comes."""
    early = [("out", b"begin"), ("in", b"program"), ("err", b"e"), ("out", b"answer")]
    late = [("err", b"e"), ("out", b"begin"), ("in", b"pro"), ("out", b"an"), ("in", b"gram"), ("out", b"swer")]
    assert recorder.turns(late) == recorder.turns(early)


def test_a_command_is_passed_on_and_recorded(tmp_path: Path) -> None:
    """In place of ssh, the shell; the recording of what it does replays."""
    environment = {**os.environ, "SSH_ORIGINAL_COMMAND": "printf begin; read -r line; printf '%s!' \"$line\"; exit 5"}
    program = tmp_path / "ssh"
    program.write_text('#!/bin/sh\nexec sh -c "$4"\n')
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-I", recorder.__file__, str(tmp_path), "config", "gpu01"], input=b"hello\n",
        env={**environment, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (5, b"beginhello!")
    entry = recorder.read(next(tmp_path.glob("*.json")))
    assert entry["status"] == 5
    assert b"".join(entry["inputs"]) == b"hello\n"


def test_a_frame_goes_on_when_its_time_has_come() -> None:
    source, feed = os.pipe()
    read, sink = os.pipe()
    os.set_blocking(source, False)
    os.set_blocking(read, False)
    way = Way(source, sink, 0.04)
    os.write(feed, b"frame")
    way.take(10.0)
    way.pass_on(10.039)
    with pytest.raises(BlockingIOError):
        os.read(read, 100)
    assert way.due_s() == 10.04
    way.pass_on(10.04)
    assert (os.read(read, 100), way.due_s()) == (b"frame", float("inf"))
    for descriptor in (source, feed, read, sink):
        os.close(descriptor)


def test_nothing_is_due_on_a_quiet_cable() -> None:
    assert cable.Way(0, 1, 0.1).due_s() == float("inf")
    assert time.monotonic() < float("inf")
