"""Unusual environments: no home, no directory, no readable site, a signal instead of Ctrl-C.

The cases come from public issue threads of other tools. Their expected results were written before they were tried.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.stack.store.artifacts import STORE_VARIABLE, Store
from hostwright.transport.routing.sshconfig import Tokens
from tests.unit.cli.mistakes.desk import Desk
from tests.unit.cli.mistakes.test_at_a_terminal import NOTHING, silent, terminal

NO_DIRECTORY = (
    "the site cannot be written: No such file or directory; create the directory first, or name another directory\n"
)
GONE = "the working directory no longer exists; change to another directory\n"


def in_no_directory(desk: Desk, *words: str) -> tuple[int, str, str]:
    """Run a call in a removed directory."""
    removed = 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"'
    command = ["bash", "-c", removed, str(desk.folder / "gone"), sys.executable, "-m", "hostwright", *words]
    done = subprocess.run(command, env=desk.environment({}), capture_output=True, text=True, check=False)
    assert not (desk.state / "reports").exists()
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", ["--help", "--version", "completion bash", "--complete-words provis"])
def test_what_needs_no_directory_works_without_one(desk: Desk, words: str) -> None:
    """Cases: pip 4255, conductr-cli 502, gigantum-cli 39."""
    status, out, err = in_no_directory(desk, *words.split())
    assert (status, bool(out), err) == (0, True, "")


def test_a_directory_that_is_gone_is_said(desk: Desk) -> None:
    for words in ("hosts",), ("plan", "gpu01"):
        assert in_no_directory(desk, *words) == (2, "", GONE)
    for words in ("--site", "fleet", "hosts"), ("hosts", "--inventory", "hosts.yml"):
        status, out, err = in_no_directory(desk, *words)
        assert (status != 0, out, err) == (True, "", GONE), words
    assert in_no_directory(desk, "init", "new")[::2] == (2, f"new: {NO_DIRECTORY}")
    assert in_no_directory(desk, "--site", str(desk.site), "hosts")[::2] == (0, "")


@pytest.mark.parametrize("words", ["hosts", "--help", "check", "runs"])
def test_a_home_that_is_no_directory(desk: Desk, words: str) -> None:
    """Cases: asyncpg 1063, kiwi 1122, pikaur 248. System accounts have ``/dev/null`` as home, where Invoke searches for
    its configuration."""
    for home in "/dev/null", "", "/proc/nonexistent":  # not even root can create anything there
        said = desk.types(words, env={"HOME": home})
        assert (said.status, said.err) == (0, ""), said


def test_a_user_without_a_home_and_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Case: pyxbackup 13, a container's user. Files are stored beside the records; a token of ssh_config that needs a
    home is refused."""

    def none(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path))
    assert Store.default().root == tmp_path / "artifacts"
    monkeypatch.setenv(STORE_VARIABLE, "/elsewhere")
    assert Store.default().root == Path("/elsewhere")
    tokens = Tokens("gpu01", 22, "root", "gpu01")
    assert (tokens.value("h"), tokens.value("p")) == ("gpu01", "22")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_new_shell_gets_its_completion(desk: Desk, shell: str) -> None:
    """Cases: sbctl 107, talm 20. No shell starts with an error, whatever is broken in its directory."""
    whole = desk.types(f"completion {shell}")
    desk.write("inventory/hosts.yml", "all: [\n")
    assert desk.types(f"completion {shell}", env={"HOSTWRIGHT_SITE": "/gone"}) == whole
    assert desk.types(f"completion {shell}", env={"HOSTWRIGHT_INVENTORY": "/gone"}) == whole
    desk.write("roles/hello/__init__.py", "")
    desk.write("roles/hello/tasks.py", "import nosuch\n")
    assert desk.types(f"completion {shell}") == whole
    desk.write("tasks.py", "import nosuch\n")
    assert desk.types(f"completion {shell}") == whole
    assert whole.status == 0


def test_a_role_whose_verbs_cannot_be_read_has_its_line(desk: Desk) -> None:
    """It was once a traceback of every verb."""
    desk.write("roles/hello/__init__.py", "")
    desk.write("roles/hello/tasks.py", "\nimport nosuch\n")
    for program in "hostwright", "invoke":
        said = desk.types("hosts", program=program)
        assert (said.status, said.sentences) == (2, 1), said
        assert "roles/hello/tasks.py:2: ModuleNotFoundError" in said.err


@pytest.mark.parametrize("words", ["power --version", "ssh --version", "power --list", "provision --version gpu01"])
def test_what_is_asked_of_the_program_behind_a_verb(desk: Desk, words: str) -> None:
    """Cases: invoke 205 and 1085. A verb with a missing argument refused it, and any other verb was run."""
    said = desk.types(words)
    assert (said.status, said.err) == (0, "")
    assert said.out == desk.types(words.split()[1]).out
    assert desk.types("lock --list gpu01").out != desk.types("--list").out, "its own option stays its own"


@pytest.mark.parametrize("columns", ["1", "2", "7"])
def test_help_in_a_terminal_without_room(desk: Desk, columns: str) -> None:
    """Case: tmt 2304."""
    for words in "--help", "--help provision", "--list":
        said = desk.types(words, env={"COLUMNS": columns})
        assert (said.status, said.err) == (0, "")
        assert "provision" in said.out


@pytest.mark.parametrize("line", ["mirror", "audit gpu01 --watch 30s"])
def test_sigterm_leaves_the_terminal_as_it_was(desk: Desk, line: str) -> None:
    """Cases: kaa 39, ttfx 9, rich-toolkit 32, thurbox 1017. The signal comes from ``timeout`` or a session manager.

    No cursor is hidden, because Ctrl-Z or a killed verb would leave it hidden (bob 694, dnf5 2620), and an alternate
    screen is left.
    """
    with silent() as (listening, port):
        entry = f"gpu01: {{ansible_host: 127.0.0.1, ansible_port: {port}}}"
        desk.write("inventory/hosts.yml", f"all: {{hosts: {{{entry}}}}}\n")
        proxy = f"http://127.0.0.1:{port}"
        env = {"https_proxy": proxy, "HTTPS_PROXY": proxy, "HOSTWRIGHT_ARTIFACTS": str(desk.folder / "mirror")}
        with terminal(desk, line, TERM="xterm", **env) as at:
            connection, _ = listening.accept()
            with connection:
                at.reads(lambda: "0/1" in at.screen or line == "mirror")
                os.kill(os.tcgetpgrp(at.keyboard), signal.SIGTERM)
                status = at.ended()
    assert "Traceback" not in at.screen
    assert (status, "stopped" in at.screen) == (130, True), at.screen
    assert "\x1b[?25l" not in at.screen
    assert at.screen.count("\x1b[?1049h") == at.screen.count("\x1b[?1049l") == (line != "mirror")
    assert NOTHING in at.screen or line == "mirror"
