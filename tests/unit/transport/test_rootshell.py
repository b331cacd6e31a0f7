"""The root shell: what runs, the errors of failures, and their distinction from sudo's refusal and a host that goes
down.
"""

from __future__ import annotations

import io
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import BecomeError, ScriptFailed, Unreachable
from hostwright.common.secret import Secret
from hostwright.inventory import Host
from hostwright.transport import Output
from hostwright.transport.root.become import BECOME_FAILED_STATUS
from hostwright.transport.root.rootshell import RootShell
from tests.unit.transport.test_become import stand_in

PASSWORD = "it's $(hunter2)"


@dataclass
class Here:
    """Replaces a session by this machine, with a stand-in of sudo; records its calls."""

    folder: Path
    commands: list[str] = field(default_factory=list)
    limits: dict[str, Any] = field(default_factory=dict)
    host: Host = field(default_factory=lambda: Host("gpu01"))
    closed: bool = False

    def run(self, command: str, *, stdin: Any, timeout_s: float, **limits: Any) -> Output:
        self.commands.append(command)
        self.limits = limits
        pieces = [stdin] if isinstance(stdin, bytes) else list(iter(lambda: stdin.read(7), b""))
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=b"".join(pieces),
            capture_output=True,
            env={"PATH": f"{self.folder}:{os.environ['PATH']}"},
            check=False,
            timeout=timeout_s,
        )
        return Output(done.returncode, done.stdout, done.stderr, False, 0.0)

    def close(self) -> None:
        self.closed = True


@dataclass
class Ends:
    """A session in which every program ends in the same way."""

    status: int
    stderr: bytes = b""
    truncated: bool = False
    host: Host = field(default_factory=lambda: Host("gpu01"))

    def run(self, command: str, **_: Any) -> Output:
        return Output(self.status, b"", self.stderr, self.truncated, 0.0)


def ends(status: int, stderr: bytes = b"", *, truncated: bool = False) -> RootShell:
    return RootShell(Ends(status, stderr, truncated))  # type: ignore[arg-type]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    stand_in(tmp_path, monkeypatch)
    return Here(tmp_path)


@pytest.fixture(params=[None, Secret(PASSWORD)])
def shell(request: pytest.FixtureRequest, here: Here) -> RootShell:
    return RootShell(here, request.param)  # type: ignore[arg-type]


def test_a_program_that_succeeds_gives_its_output(shell: RootShell) -> None:
    assert shell.run("cat; echo done", timeout_s=20, failure="it cannot be done").stdout == b"done\n"


def test_attempt_runs_both_parts_and_returns_the_root_status(shell: RootShell) -> None:
    output = shell.attempt("echo two; exit 5", as_user="echo one; exit 9", timeout_s=20)
    assert (output.status, output.stdout) == (5, b"one\ntwo\n")


def test_a_stream_reaches_the_program_whole(shell: RootShell) -> None:
    data = bytes(range(256)) * 10
    output = shell.stream('printf "%s|" "$@"; cat', "a b", "$(id)", stdin=io.BytesIO(data), timeout_s=20)
    assert output.stdout == b"a b|$(id)|" + data


def test_password_is_in_no_command_or_script(shell: RootShell, here: Here) -> None:
    shell.run("true", timeout_s=20, failure="it cannot be done")
    shell.stream("cat", stdin=io.BytesIO(b""), timeout_s=20)
    assert "hunter2" not in "".join(here.commands)
    assert "hunter2" not in f"{shell} {shell!r}"
    assert not hasattr(shell, "__dict__")


def test_limits_are_the_sessions(shell: RootShell, here: Here) -> None:
    shell.attempt("true", timeout_s=20, idle_s=3, cap_bytes=9)
    assert here.limits == {"idle_s": 3, "cap_bytes": 9}
    shell.attempt("true", timeout_s=20)
    assert here.limits == {}


def test_failed_program_is_reported_with_its_last_error_line(shell: RootShell) -> None:
    script = "echo begun; echo 'mkdir: no' >&2; echo 'E: \033[31mthe disk is full' >&2; echo >&2; exit 3"
    with pytest.raises(ScriptFailed) as caught:
        shell.run(script, timeout_s=20, failure="its record cannot be written")
    assert str(caught.value) == "gpu01: its record cannot be written: E: [31mthe disk is full"
    assert (caught.value.status, caught.value.lines) == (3, ("mkdir: no", "E: [31mthe disk is full"))


def test_a_program_that_fails_without_a_word_is_told_with_its_status(shell: RootShell) -> None:
    with pytest.raises(ScriptFailed) as caught:
        shell.run("exit 3", timeout_s=20, failure="its record cannot be written")
    assert caught.value.sentence == "its record cannot be written: exit status 3 (no error output)"


def test_what_a_host_prints_without_end_is_cut() -> None:
    with pytest.raises(ScriptFailed) as caught:
        ends(1, b"x" * 100_000 + b"\n\xff\n" * 100).run("true", timeout_s=20, failure="it failed")
    assert len(caught.value.lines) == 15
    with pytest.raises(ScriptFailed) as caught:
        ends(1, b"x" * 100_000).run("true", timeout_s=20, failure="it failed")
    assert len(caught.value.sentence) < 400


def test_sudos_refusal_is_no_failure_of_the_program() -> None:
    refused = ends(BECOME_FAILED_STATUS, b"hostwright-become no sudo\n")
    with pytest.raises(BecomeError, match="not installed"):
        refused.run("true", timeout_s=20, failure="it failed")
    with pytest.raises(BecomeError, match="not installed"):
        refused.attempt("true", timeout_s=20)
    assert ends(BECOME_FAILED_STATUS, b"a program may end so").attempt("true", timeout_s=20).status == 77


@pytest.mark.parametrize("status", [129, 137, 143, -1])
def test_a_program_that_is_killed_belongs_to_a_host_that_goes_down(status: int) -> None:
    killed = ends(status, b"Killed\n")
    for use in (
        lambda: killed.run("true", timeout_s=20, failure="it failed"),
        lambda: killed.attempt("true", timeout_s=20),
        lambda: killed.stream("cat", stdin=io.BytesIO(b""), timeout_s=20),
    ):
        with pytest.raises(
            Unreachable, match=r"^gpu01: the program that Hostwright ran was killed on the host: the host is going down"
        ) as caught:
            use()
        assert caught.value.passing, "it is tried again"


def test_a_program_that_was_cut_off_at_its_cap_was_not_killed() -> None:
    assert ends(-1, truncated=True).attempt("true", timeout_s=20).truncated


def test_closing_a_root_shell_closes_its_session(here: Here) -> None:
    with RootShell(here) as shell:  # type: ignore[arg-type]
        assert shell.host == "gpu01"
    assert here.closed
