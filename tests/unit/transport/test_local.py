"""This machine as a host: the session works as over SSH, with real processes of ``/bin/sh``."""

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.common.secret import Secret
from hostwright.inventory import Host
from hostwright.transport import Options, Session, connect
from hostwright.transport.exchange import UNKNOWN_STATUS
from hostwright.transport.local import Process
from hostwright.transport.root.rootshell import RootShell
from hostwright.verify.backend import testinfra_host as seen_by_testinfra


@pytest.fixture
def session() -> Iterator[Session]:
    with connect(Host("me", connection="local"), Options()) as opened:
        yield opened


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def until(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"never happened: {what}"
        time.sleep(0.01)


def test_a_command_has_its_input_its_outputs_and_its_status(session: Session) -> None:
    output = session.run("cat; echo no >&2; exit 3", stdin=b"yes", timeout_s=20)
    assert (output.status, output.stdout, output.stderr, output.truncated) == (3, b"yes", b"no\n", False)
    assert session.execs == 1
    assert session.noise == b""


@pytest.mark.parametrize("stream", [b"x" * 3_000_000, io.BytesIO(b"x" * 3_000_000)])
def test_more_than_a_pipe_holds_goes_in_and_out(session: Session, stream: bytes | io.BytesIO) -> None:
    heard = bytearray()
    output = session.run("cat", stdin=stream, timeout_s=60, on_stdout=heard.extend)
    assert (output.status, bytes(heard)) == (0, b"x" * 3_000_000)


def test_a_command_that_reads_nothing_ends_all_the_same(session: Session) -> None:
    assert session.run("exit 4", stdin=b"x" * 3_000_000, timeout_s=20).status == 4


def test_what_goes_on_behind_a_command_keeps_nobody_waiting(session: Session) -> None:
    assert session.run("sleep 60 & echo begun", timeout_s=20).stdout == b"begun\n"


def test_a_command_that_is_killed_has_no_status_of_its_own(session: Session) -> None:
    assert session.run("kill -9 $$", timeout_s=20).status in (UNKNOWN_STATUS, 137)


def test_output_without_end_is_cut_off(session: Session) -> None:
    output = session.run("yes", timeout_s=20, cap_bytes=1000)
    assert (output.truncated, len(output.stdout), output.status) == (True, 1000, UNKNOWN_STATUS)


def test_time_is_bounded_and_the_sentence_names_this_machine(session: Session) -> None:
    with pytest.raises(Unreachable, match=r"^me: sleep 60 did not end within 0.2 s: .*@this machine\)$") as caught:
        session.run("sleep 60", timeout_s=0.2)
    assert caught.value.passing


def test_a_session_that_is_closed_ends_what_waits_for_it(session: Session) -> None:
    threading.Timer(0.2, session.close).start()
    with pytest.raises(Unreachable, match="the connection was lost"):
        session.run("sleep 60", stdin=io.BytesIO(b"x" * 3_000_000), timeout_s=50)
    with pytest.raises(Unreachable, match="the connection was lost"):
        session.run("sleep 60", timeout_s=50)


def test_a_command_that_was_cut_off_never_counts_as_ended_well(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a cut, the shell reads the end of its input, and exits with 0."""
    cut, close = Process.cut, Process.close

    def cut_late(process: Process) -> None:
        until(process.recv_ready, "the shell's first line")
        cut(process)

    def close_and_wait(process: Process) -> None:
        close(process)
        until(lambda: process._process.poll() is not None, "the shell's end")

    monkeypatch.setattr(Process, "cut", cut_late)
    monkeypatch.setattr(Process, "close", close_and_wait)
    session.close()
    with pytest.raises(Unreachable, match="the connection was lost"):
        session.run("sleep 60", timeout_s=50)


def test_nothing_is_left_of_a_hundred_commands(session: Session) -> None:
    session.run(":", timeout_s=20)
    before = descriptors()
    for _ in range(100):
        session.run("cat", stdin=b"x" * 100_000, timeout_s=20)
    until(lambda: descriptors() <= before, "all descriptors closed")


def test_a_command_has_the_environment_of_a_login(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables of an active virtual environment, or of Hostwright itself."""
    monkeypatch.setenv("PYTHONPATH", "/srv/mine")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", "/srv/hunter2")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/srv/lib")
    monkeypatch.setenv("PATH", f"/srv/venv/bin:{os.environ['PATH']}")
    monkeypatch.setenv("https_proxy", "http://proxy.example.org:3128")
    before = os.umask(0o077)
    try:
        text = session.run("umask; pwd; env", timeout_s=20).stdout.decode()
    finally:
        os.umask(before)
    umask, place, *lines = text.splitlines()
    assert (umask, place) == ("0022", str(Path.home().resolve()))
    names = {line.partition("=")[0] for line in lines}
    assert names - {"_", "OLDPWD", "PWD", "SHLVL"} == {"HOME", "USER", "LOGNAME", "SHELL", "PATH", "https_proxy"}
    assert not [line for line in lines if "venv" in line]


def test_a_command_belongs_to_no_terminal_whose_keys_could_end_it(session: Session) -> None:
    assert session.run("ps -o sid= -p $$", timeout_s=20).stdout.split() != [str(os.getsid(0)).encode()]
    assert session.run("ps -o tty= -p $$", timeout_s=20).stdout.split() == [b"?"]


def test_no_secret_is_an_argument_of_any_process(session: Session, tmp_path: Path) -> None:
    """Root's programs and the password are sent over standard input, as over SSH."""
    listed = tmp_path / "listed"
    shell = RootShell(session, Secret("hunter2-9f3"))
    shell.attempt("", as_user=f"cat /proc/[0-9]*/cmdline /proc/self/environ >{listed} 2>/dev/null", timeout_s=60)
    assert b"hwbegin-" in listed.read_bytes()
    assert b"hunter2-9f3" not in listed.read_bytes()


def test_an_address_that_is_not_of_this_machine_is_refused() -> None:
    for address in ("127.0.0.1", "localhost", "::1", ""):
        connect(Host("me", address, connection="local"), Options()).close()
    for address in ("192.0.2.7", "no-such-name.invalid", "2001:db8::7"):
        with pytest.raises(Unreachable, match="is not an address of this machine; correct one of the two") as caught:
            connect(Host("me", address, connection="local"), Options())
        assert not caught.value.passing


def test_no_ssh_is_needed(tmp_path: Path) -> None:
    """Neither paramiko nor Fabric is imported, and no ssh is on the PATH."""
    code = (
        "import sys; from hostwright.inventory import Host; from hostwright.transport import Options, connect; "
        "print(connect(Host('me', connection='local'), Options()).run('exit 5', timeout_s=20).status, "
        "'fabric' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("5 False\n", "")


def test_checks_see_this_machine_through_testinfra(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    host = seen_by_testinfra(RootShell(session))
    assert host.file(str(tmp_path / "file")).content_string == "here"
    assert host.run("id -u").stdout.split() == [str(os.getuid())]
