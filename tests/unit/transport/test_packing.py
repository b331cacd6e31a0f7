"""Compressed programs and outputs: intact, damaged, and with extreme growth; with the real gzip and shell."""

from __future__ import annotations

import gzip
import subprocess
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.common.errors import BecomeError, ProtocolError
from hostwright.common.secret import Secret
from hostwright.transport import Output
from hostwright.transport.root import packing
from hostwright.transport.root.become import BECOME_FAILED_STATUS
from hostwright.transport.root.packing import COMMAND, UNPACKED_STATUS, packed, room, unpacked
from hostwright.transport.root.rootshell import RootShell
from tests.unit.transport.test_become import stand_in
from tests.unit.transport.test_rootshell import Here

CAP = 1 << 20


def came(data: bytes, status: int = 0, *, truncated: bool = False) -> Output:
    """The output received from a host."""
    return Output(status, data, b"", truncated, 0.0)


def sent(program: bytes, nonce: bytes = b"") -> Output:
    """The data sent for a program."""
    done = subprocess.run(["/bin/sh", "-c", COMMAND], input=packed(program, nonce), capture_output=True, check=False)
    return Output(done.returncode, done.stdout, done.stderr, False, 0.0)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RootShell:
    stand_in(tmp_path, monkeypatch)
    return RootShell(Here(tmp_path))  # type: ignore[arg-type]


@pytest.mark.parametrize("script", ["exit 0", "exit 7", "seq 5000; exit 141", "printf 'no end of line'; exit 255"])
def test_output_and_status_come_back_as_they_are(script: str) -> None:
    plain = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=False)
    output = unpacked("gpu01", sent(script.encode()), CAP)
    assert (output.status, output.stdout) == (plain.returncode, plain.stdout)


def test_both_parts_run_and_the_status_is_roots(shell: RootShell) -> None:
    output = shell.collect("echo two; exit 5", as_user="echo one; cat; exit 9", timeout_s=20, cap_bytes=CAP)
    assert (output.status, output.stdout) == (5, b"one\ntwo\n")


def test_a_program_that_sudo_refuses_is_told_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    here = Here(tmp_path)
    monkeypatch.setattr(here, "run", _as_a_user(here))
    with pytest.raises(BecomeError, match="--ask-become-pass"):
        RootShell(here).collect("echo", timeout_s=20, cap_bytes=CAP)  # type: ignore[arg-type]


def _as_a_user(here: Here):
    """A session without root, whoever runs the tests."""
    run = here.run

    def told(command: str, **more: object) -> Output:
        nobody = "user_id() { uid=65534; }\nrun_as_root; exit\n"
        program = gzip.decompress(more["stdin"]).decode().replace("run_as_root; exit\n", nobody)  # type: ignore[arg-type]
        return run(command, **{**more, "stdin": gzip.compress(program.encode())})

    return told


def test_the_password_is_kept_nowhere(shell: RootShell) -> None:
    packing._member.cache_clear()
    secret = RootShell(shell.session, Secret("hunter2 and more"))
    secret.collect("echo", nonce="0123456789", timeout_s=20, cap_bytes=CAP)
    assert packing._member.cache_info().currsize == 0


def test_what_hosts_have_in_common_is_compressed_once() -> None:
    packing._member.cache_clear()
    for nonce in (b"0123", b"4567"):
        program = b"n=%s\n%s\necho %s %s" % (nonce, b"#" * 5000, nonce, nonce)
        assert gzip.decompress(packed(program, nonce)) == program
        assert unpacked("gpu01", sent(program, nonce), CAP).stdout == b"%s %s\n" % (nonce, nonce)
    assert packing._member.cache_info().misses == 4, "what stands before, between and behind the nonces of the first"
    assert len(packed(program, nonce)) < 250


def test_a_long_answer_of_nothing_that_shrinks_has_room() -> None:
    for size in (1, 1000, CAP):
        data = subprocess.run(["/bin/sh", "-c", f"head -c {size} /dev/urandom"], capture_output=True, check=True).stdout
        assert len(gzip.compress(data + b"\n255", 1)) <= room(size)


def test_a_host_without_gzip_gets_the_program_as_it_is(
    tmp_path: Path, shell: RootShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "hostwright.transport.root.rootshell.COMMAND", COMMAND.replace("/bin/gzip", str(tmp_path / "no-gzip"))
    )
    output = shell.collect("echo two; exit 5", as_user="echo one", timeout_s=20, cap_bytes=CAP)
    assert (output.status, output.stdout) == (5, b"one\ntwo\n")
    assert len(shell.session.commands) == 2  # type: ignore[attr-defined]


def test_whether_there_is_gzip_is_known_before_anything_is_read_or_run() -> None:
    command = COMMAND.replace("/bin/gzip", "/no/gzip")
    done = subprocess.run(["/bin/sh", "-c", f"{command}"], input=b"x" * 100, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (UNPACKED_STATUS, b"", b"")


WHOLE = gzip.compress(b"an answer\n" * 1000 + b"\n0")
DAMAGED = {
    "nothing": b"",
    "no gzip": b"an answer\n\n0",
    "half of it": WHOLE[: len(WHOLE) // 2],
    "all but its last byte": WHOLE[:-1],
    "a wrong sum": WHOLE[:-8] + bytes(8),
    "a turned bit": WHOLE[:40] + bytes([WHOLE[40] ^ 16]) + WHOLE[41:],
    "something behind it": WHOLE + b"x",
    "another behind it": WHOLE + WHOLE,
    "no status": gzip.compress(b"an answer\n"),
    "a status that is none": gzip.compress(b"an answer\n\n0x1"),
    "a status of many digits": gzip.compress(b"an answer\n\n0000000000001"),
    "a status in other digits": gzip.compress("an answer\n\n٣".encode()),
    "zlib's own format": zlib.compress(b"an answer\n\n0"),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_or_not_whole_is_an_error_of_that_host(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"^gpu01: the host's compressed output is damaged or incomplete; check "):
        unpacked("gpu01", came(data), CAP)


@pytest.mark.parametrize("fill", [b"\0", b"y\n", b"\n0"])
def test_what_grows_a_thousandfold_is_cut_at_the_limit(fill: bytes) -> None:
    bomb = gzip.compress(fill * (64 * CAP // len(fill)))
    assert len(bomb) <= room(CAP)
    tracemalloc.start()
    output = unpacked("gpu01", came(bomb), CAP)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert output.truncated and len(output.stdout) == CAP
    assert peak <= 4 * CAP


def test_the_limit_itself_is_no_cut() -> None:
    for size in (CAP, CAP - 1):
        output = unpacked("gpu01", came(gzip.compress(b"x" * size + b"\n255")), CAP)
        assert (output.status, len(output.stdout), output.truncated) == (255, size, False)
    assert unpacked("gpu01", came(gzip.compress(b"x" * (CAP + 4) + b"\n0")), CAP).truncated


@pytest.mark.parametrize("status", [1, 137, BECOME_FAILED_STATUS])
def test_what_did_not_come_to_its_end_is_left_as_it_is(status: int) -> None:
    assert unpacked("gpu01", came(b"x", status), CAP) == came(b"x", status)
    assert unpacked("gpu01", came(WHOLE, truncated=True), CAP) == came(WHOLE, truncated=True)


@given(st.binary(max_size=300), st.integers(0, 300), st.binary(max_size=20))
def test_any_bytes_are_an_output_or_an_error_of_the_host(data: bytes, cut: int, more: bytes) -> None:
    for lie in (data, gzip.compress(data)[:cut] + more, gzip.compress(data + b"\n0")[:cut] + more):
        try:
            output = unpacked("gpu01", came(lie), 100)
        except ProtocolError:
            continue
        assert len(output.stdout) <= 104
        assert 0 <= output.status <= 999


@given(st.binary(max_size=2000))
def test_every_output_comes_back(data: bytes) -> None:
    assert unpacked("gpu01", came(gzip.compress(data + b"\n17")), 2000).stdout == data
