"""Commands through any login shell: their output byte for byte, or an error message with the cause."""

from __future__ import annotations

import io
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hostwright.common.errors import Unreachable
from hostwright.common.quoting import sh
from hostwright.plan.model import Probe
from hostwright.plan.observing import ask
from hostwright.plan.planning import LOGIN_SHELL
from hostwright.transport import Session, connect, streams
from hostwright.transport.root.rootshell import RootShell
from hostwright.verify import backend
from tests.lab.shells import CASES, WAITS, Case
from tests.lab.sshd import Sshd, options, running

SHELLS = {"nologin": "/usr/sbin/nologin", "csh": "/usr/bin/bsd-csh", "rbash": "/bin/rbash"}
#: One argument with all characters that some shell interprets differently.
AWKWARD = "".join(map(chr, range(1, 127))) + "'\"'\"'\\''!! !a $HOME `id` %1 {a,b} ~root é\n"
EXACT = sh("cd /; cd etc; printf '%%s\\0|' %s; bash -c 'echo bash'; echo err >&2; exit 7", AWKWARD)
FOLDER = Path("/tmp/hwtest-shells")  # noqa: S108 - homes that their users can access


@pytest.fixture(scope="module")
def server() -> Iterator[Sshd]:
    """An sshd, and a user for each shell."""
    names = dict.fromkeys(case.shell for case in CASES)
    FOLDER.mkdir(exist_ok=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, FOLDER, ignore_errors=True)
        for name in names:
            shell = SHELLS.get(name, f"/usr/bin/{name}")
            words = ["--home-dir", str(FOLDER / name), "--shell", shell, "--password", "*", f"hwtest-{name}"]
            subprocess.run(["useradd", "--no-create-home", *words], check=True)
            stack.callback(subprocess.run, ["userdel", "--force", f"hwtest-{name}"], capture_output=True, check=False)
        yield stack.enter_context(running())


@pytest.fixture
def session(server: Sshd, case: Case) -> Iterator[Session]:
    """A session of the case's user, whose home has only the case's start files."""
    home = FOLDER / case.shell
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (home / ".noise").write_text("echo noise of each bash\n")
    for name, text in case.files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    subprocess.run(["chown", "-R", f"hwtest-{case.shell}:", home], check=True)
    with connect(server.target(user=f"hwtest-{case.shell}"), options()) as opened:
        yield opened


RUN = [case for case in CASES if not case.error]
REFUSED = [case for case in CASES if case.error]


@pytest.mark.parametrize("case", RUN, ids=lambda case: case.source)
def test_a_command_prints_byte_for_byte_what_it_prints(session: Session, case: Case) -> None:
    output = session.run(EXACT, timeout_s=30)
    assert (output.status, output.stderr) == (7, b"err\n")
    assert output.stdout == AWKWARD.encode() + b"\0|bash\n"
    data = bytes(range(256)) * 5000
    assert session.run("cat", stdin=io.BytesIO(data), timeout_s=30).stdout == data
    facts = ask(RootShell(session), [probe := Probe("echo fact; exit 3")])
    assert (facts[probe].status, facts[probe].text) == (3, "fact\n")
    assert backend.testinfra_host(RootShell(session)).file("/etc/passwd").exists
    notes = facts[LOGIN_SHELL].text if LOGIN_SHELL in facts else ""
    if case.names:
        assert f"from {case.names};" in notes.replace("~/.config/fish/", "")
    else:
        assert notes == ""


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.source)
def test_a_shell_that_runs_no_command_is_told_with_what_it_says(
    session: Session, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "START_S", 6.0)  # time for its message
    begun = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        session.run(EXACT, timeout_s=30)
    assert case.error in str(caught.value)
    assert time.monotonic() - begun < 25, "not at the end of the command's time"
    assert WAITS in str(caught.value) or not caught.value.passing, "it is not tried again"
