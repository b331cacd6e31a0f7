"""Programs that become root: both parts run, no secret leaks, and every refusal has its own error."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.errors import BecomeError, InputError
from hostwright.common.secret import Secret
from hostwright.transport.root import become
from hostwright.transport.root.become import BECOME_FAILED_STATUS, check_become, root_command, wrap

#: Replaces sudo if the tests run as a user; sudo itself is not under test.
SUDO = """\
#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -S) read -r line;; -p) shift;; -*) ;; *) break;; esac; shift; done
exec "$@"
"""


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = SUDO) -> None:
    """The only trusted sudo, whoever runs the tests."""
    (folder / "sudo").write_text(text)
    (folder / "sudo").chmod(0o755)
    monkeypatch.setattr(become, "SUDO_PLACES", (str(folder / "sudo"),))
    monkeypatch.setattr(become, "SUDO_TRUSTED", "-type f")


@dataclass(frozen=True)
class Done:
    status: int
    stdout: bytes
    stderr: bytes


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    stand_in(tmp_path, monkeypatch)
    return f"{tmp_path}:{os.environ['PATH']}"


def run(program: bytes, path: str = os.environ["PATH"], shell: str = "/bin/sh") -> Done:
    done = subprocess.run(
        [shell], input=program, capture_output=True, env={"PATH": path}, cwd="/", check=False, timeout=30
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize("password", [None, Secret('it\'s $(me) \\ "x"')])
def test_both_parts_run_in_order_with_nothing_to_read(path: str, shell: str, password: Secret | None) -> None:
    done = run(wrap("echo one; cat; exit 9", "echo two; cat; exit 5", password=password), path, shell)
    assert (done.status, done.stdout, done.stderr) == (5, b"one\ntwo\n", b"")


def test_the_user_part_alone_gives_its_status(path: str) -> None:
    assert run(wrap("echo one; exit 9", "", password=None), path).status == 9


def test_a_program_without_a_user_part_runs_as_root(path: str) -> None:
    assert run(wrap("", "echo two", password=None), path).stdout == b"two\n"


def test_here_documents_and_long_programs_arrive_whole(path: str) -> None:
    text = "x" * 70 + "\n"
    program = f"cat <<'END'\n{text * 4000}END"
    assert run(wrap(program, program, password=None), path).stdout.decode() == text * 8000


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60))
def test_every_text_reaches_both_parts_as_data(text: str) -> None:
    program = f"printf %s {shlex.quote(text)}"
    if os.geteuid() == 0:
        done = run(wrap(program, program, password=Secret(text.replace("\n", " "))))
        assert done.stdout == text.encode() * 2
    assert run(wrap(program, "", password=None)).stdout == text.encode()


#: a sudo that records its calls
COUNTING = (
    '#!/bin/sh\necho call >>"${0%%/*}/calls"\n%s\nwhile :; do case $1 in -*) shift;; *) break;; esac; done; exec "$@"\n'
)
AS_A_USER = "user_id() { uid=65534; }\nrun_as_root; exit\n"  #: also if root runs the tests


@pytest.mark.parametrize(
    ("root", "refuses", "ends"),
    [
        ("echo two", "", (0, 1)),
        ("exit 5", "", (5, 1)),
        ("exit 77", "", (77, 1)),
        ("exit 1", "", (1, 2)),
        ("echo two", "echo 'sudo: a password is required' >&2; exit 1", (BECOME_FAILED_STATUS, 2)),
    ],
)
def test_sudo_that_asks_for_nothing_is_called_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, refuses: str, ends: tuple[int, int]
) -> None:
    """A call of sudo takes as long as ten probes, and is logged. Only exit status 1 may be a refusal."""
    status, calls = ends
    stand_in(tmp_path, monkeypatch, COUNTING % refuses)
    done = run(wrap("echo one", root, password=None).replace(b"run_as_root; exit\n", AS_A_USER.encode()))
    assert (done.status, done.stdout.startswith(b"one\n")) == (status, True)
    assert (tmp_path / "calls").read_text() == "call\n" * calls
    if refuses:
        with pytest.raises(BecomeError, match="--ask-become-pass"):
            check_become("gpu01", done)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_a_shell_knows_whose_it_is_without_a_process(shell: str) -> None:
    text = wrap("", "true", password=None).decode()
    own = text[text.index("user_id() {") : text.index("run_as_root() {")]
    told = f"id() {{ echo a process; }}\n{own}\nuser_id; echo $uid\n"
    assert run(told.encode(), shell=shell).stdout.decode() == f"{os.geteuid()}\n"
    without = told.replace("/proc/self/status", "/no/proc")
    assert run(without.encode(), shell=shell).stdout == b"a process\n"


def test_a_password_that_is_no_line_is_bad_input() -> None:
    with pytest.raises(InputError, match="line break") as caught:
        wrap("", "true", password=Secret("se\ncret"))
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("password", [None, Secret("hunter2")])
def test_a_stream_reaches_the_script_after_its_opening(path: str, password: Secret | None) -> None:
    command, opening = root_command('printf "%s|" "$@"; cat', "a b", "$(id)", "'", password=password)
    assert "hunter2" not in command
    data = bytes(range(256)) * 100
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=opening + data, capture_output=True, env={"PATH": path}, check=True
    )
    assert done.stdout == b"a b|$(id)|'|" + data


SAID = {
    "no null device": "/dev/null is not a device",
    "no sudo": "not installed",
    "no trusted sudo": "must be one of /usr/bin/sudo",
    "sudo: a password is required": "--ask-become-pass, or set NOPASSWD",
    "Sorry, try again. sudo: no password was provided sudo: 1 incorrect password attempt": "rejected the password",
    "hwtest is not in the sudoers file.  This incident will be reported.": "does not allow the login user to become",
    "Sorry, user hwtest is not allowed to execute '/bin/sh -c :' as root on gpu01.": "does not allow the login user",
    "sudo: sorry, you must have a tty to run sudo": "requiretty",
    "sudo: \x1b[31munheard of": "sudo failed: sudo: [31munheard of",
}


@pytest.mark.parametrize(("said", "sentence"), SAID.items())
def test_each_refusal_has_its_sentence(said: str, sentence: str) -> None:
    output = Done(BECOME_FAILED_STATUS, b"", b"motd\nhostwright-become " + said.encode() + b"\n")
    with pytest.raises(BecomeError) as caught:
        check_become("gpu01", output)
    assert str(caught.value).startswith("gpu01: ")
    assert sentence in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_null_device_that_is_a_file_is_named_before_sudo_is_looked_for() -> None:
    text = wrap("", "echo ran", password=None).replace(b"-c /dev/null", b"-c /etc/passwd")
    done = subprocess.run(["/bin/sh"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (BECOME_FAILED_STATUS, b"")
    assert b"hostwright-become no null device" in done.stderr


def test_other_failures_are_not_ours() -> None:
    check_become("gpu01", Done(BECOME_FAILED_STATUS, b"", b"a program may end so"))
    check_become("gpu01", Done(1, b"", b"hostwright-become no sudo\n"))
