"""Tests of the commands of checks on a host: as the login user or as root, and on a host that is in use."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.errors import ProtocolError, Unreachable
from hostwright.common.secret import Secret
from hostwright.inventory import Host
from hostwright.plan.host import jobs as hostjobs
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell
from hostwright.verify import backend
from hostwright.verify.layer_checks import _why
from tests.unit.transport.test_become import SUDO


@dataclass
class Here:
    """This machine as a session without a kept shell, with a stand-in of sudo. ``killed`` kills its commands."""

    folder: Path
    killed: bool = False
    truncated: bool = False
    path: str = ""
    host: Host = field(default_factory=lambda: Host("gpu01"))
    idle: list[Any] = field(default_factory=list)

    def run(self, command: str, *, stdin: Any, timeout_s: float, **_: Any) -> Output:
        if not isinstance(stdin, bytes):
            return Output(1, b"", b"", False, 0.0)
        if self.killed:
            return Output(143, b"", b"Terminated\n", False, 0.0)
        if self.truncated:
            return Output(-1, bytes(100), b"", True, 0.0)
        env = {"PATH": self.path or f"{self.folder}:{os.environ['PATH']}"}
        done = subprocess.run([command], input=stdin, capture_output=True, env=env, check=False, timeout=timeout_s)
        return Output(done.returncode, done.stdout, done.stderr, False, 0.0)


@pytest.fixture
def here(tmp_path: Path) -> Any:
    (tmp_path / "sudo").write_text(SUDO)
    (tmp_path / "sudo").chmod(0o755)
    return Here(tmp_path)


@pytest.mark.parametrize("root", [False, True])
def test_a_command_gets_its_arguments_as_data_and_gives_its_status(here: Any, root: bool) -> None:
    host = backend.testinfra_host(RootShell(here, Secret("hunter2")), root=root)
    done = host.run("printf '%%s|' %s %s; echo no >&2; exit 3", "a b", "$(id)")
    assert (done.rc, done.stdout, done.stderr) == (3, "a b|$(id)|", "no\n")


@pytest.mark.parametrize("root", [False, True])
def test_command_on_a_lost_host_does_not_judge_the_layer(here: Any, root: bool) -> None:
    here.killed = True
    host = backend.testinfra_host(RootShell(here), root=root)
    with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host"):
        host.run("true")
    with pytest.raises(Unreachable, match="the program that Hostwright ran was killed on the host"):
        assert host.file("/etc/motd").exists


@pytest.mark.parametrize("root", [False, True])
def test_a_failed_assertion_says_command_status_and_last_lines_and_shows_no_object(here: Any, root: bool) -> None:
    host = backend.testinfra_host(RootShell(here), root=root)
    with pytest.raises(AssertionError) as failure:
        host.check_output("echo 1; echo 2 >&2; echo 'not found' >&2\nexit 127")
    assert str(failure.value).splitlines()[0] == (
        "Unexpected exit code 127 for `echo 1; echo 2 >&2; echo 'not found' >&2 …` (status 127): 2 / not found"
    )
    assert repr(host.run("exit 3")) == "`exit 3` (status 3): no output"


def test_a_check_finds_its_commands_whatever_path_sessions_get(tmp_path: Path) -> None:
    """archcraft-os/archcraft#455: PATH in /etc/environment contains only the distribution's own scripts."""
    host = backend.testinfra_host(RootShell(Here(tmp_path, path="/usr/share/archcraft/scripts")))
    assert host.check_output("uname -s") == "Linux"
    assert host.check_output('echo "$SESSION_PATH"') == "/usr/share/archcraft/scripts"


def test_endless_output_does_not_judge_the_layer(here: Any) -> None:
    here.truncated = True
    with pytest.raises(ProtocolError, match="the output of the command is too long: cat /dev/zero"):
        backend.testinfra_host(RootShell(here)).run("cat /dev/zero")


COMPILED = """\
work=$(mktemp -d)
printf '#!/bin/sh\\necho "ran in $0 with $*"\\n' >"$work/program"; chmod +x "$work/program"
"$work/program" "$1" "$2"
exit 3
"""


def runner(here: Any) -> Any:
    shell = RootShell(here, Secret("hunter2"))
    return backend.program_runner(backend.testinfra_host(shell), backend.testinfra_host(shell, root=True).run)


def test_a_program_runs_where_programs_may_and_nothing_is_left(here: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(backend, "USER_DIRS", f'"{tmp_path}/own place"')
    done = runner(here)(COMPILED, "a b", "$(id)")
    assert (done.rc, done.stderr) == (3, "")
    assert done.stdout.startswith(f"ran in {tmp_path}/own place/check.")
    assert done.stdout.endswith("/program with a b $(id)\n")
    assert not (tmp_path / "own place").exists()


def test_root_runs_it_where_the_user_may_run_nothing(here: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(backend, "USER_DIRS", f"{tmp_path}/file/work")
    monkeypatch.setattr(hostjobs, "WORK_DIRS", (f"{tmp_path}/roots",))
    done = runner(here)(COMPILED, "1", "2")
    assert (done.rc, done.stderr) == (3, "")
    assert done.stdout.startswith(f"ran in {tmp_path}/roots/check.")


def test_where_nobody_may_it_says_so(here: Any, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(backend, "USER_DIRS", f"{tmp_path}/file/work")
    monkeypatch.setattr(hostjobs, "WORK_DIRS", (f"{tmp_path}/file/roots",))
    done = runner(here)(COMPILED, "1", "2")
    assert done.rc != 0
    assert done.stderr == "no directory was found in which programs may be run\n"


def test_a_program_that_hung_is_not_run_again(here: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(backend, "ANSWER_S", 0.1)
    monkeypatch.setattr(backend, "_KILL_S", 0.1)
    (tmp_path / "hangs").write_text('#!/bin/sh\necho once >>"$0.ran"\ntrap : TERM\nwhile :; do sleep 60; done\n')
    (tmp_path / "hangs").chmod(0o755)
    host = backend.testinfra_host(RootShell(here, Secret("hunter2")))
    run = backend.BoundedRunner(host, tmp_path)
    for one in (run, run, backend.BoundedRunner(host, tmp_path)):  # the last as in another process
        with pytest.raises(AssertionError, match=r"hangs does not answer within 0\.1 s"):
            one(f"{tmp_path}/hangs -L")
    assert (tmp_path / "hangs.ran").read_text() == "once\n"
    assert run("printf %s", "a b").stdout == "a b"


@pytest.mark.parametrize("root", [False, True])
def test_what_does_not_change_is_asked_once_and_printed_to_each_check(here: Any, tmp_path: Path, root: bool) -> None:
    heard: list[Output] = []
    (tmp_path / "answers").mkdir()
    for asked in range(3):  # the last two as in other processes
        host = backend.testinfra_host(RootShell(here, Secret("hunter2")), root=root, heard=heard.append)
        once = backend.OnceRunner(host, tmp_path / "answers")
        for argument in ("a", "b"):
            done = once("echo %s >>%s; printf '\\377'; echo no >&2; exit 3", argument, f"{tmp_path}/asked")
            assert (done.rc, done.stdout_bytes, done.stderr) == (3, b"\377", "no\n")
        assert len(heard) == 2 * (asked + 1)
    assert (tmp_path / "asked").read_text() == "a\nb\n"


def test_no_message_of_a_check_shows_a_python_object() -> None:
    """pytest's explanation of ``assert run("x").rc == 0`` would print the method of an object with its address."""

    said = "assert 2 == 0\n +  where 2 = `x` (status 2): no.rc"

    def fail() -> None:
        raise AssertionError(f"{said}\n +    where no = <a.B object at 0x7f>()")

    assert _why(pytest.CallInfo.from_call(fail, "call")) == said
