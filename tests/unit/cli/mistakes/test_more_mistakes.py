"""More mistakes than in ``test_mistakes.py``: variants, tested in this process, and correct calls that resemble
mistakes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.cli.program import program
from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request
from tests.places import PROJECT

HOSTS = """\
all:
  children:
    rack3:
      hosts:
        gpu01: {ansible_host: 192.0.2.11}
        gpu02: {ansible_host: 192.0.2.12}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site with two hosts, as the working directory."""
    root = tmp_path / "fleet"
    assert init(Request(), str(root)) == 0
    (root / "inventory/hosts.yml").write_text(HOSTS)
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    for variable in ("HOSTWRIGHT_SITE", "HOSTWRIGHT_INVENTORY"):
        monkeypatch.setenv(variable, "")
    return root


def typed(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str]:
    """Return the exit status of a line, and its output on one line."""
    capsys.readouterr()
    status = 0
    try:
        program.run(["hostwright", *shlex.split(line)])
    except SystemExit as end:
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return status, " ".join((err or out).split())


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--help provison", "unknown verb 'provison'; did you mean 'provision'?"),
        ("power gpu01", "power: unknown order 'gpu01'; valid: on, off, cycle, status"),
        ("power", "power needs ORDER; `hostwright --help power` explains it"),
        ("completion powershell", "completion: unknown shell 'powershell'"),
        ("init .", "already exist; "),
    ],
)
def test_a_slip_of_the_fingers(site: Path, capsys: pytest.CaptureFixture[str], line: str, sentence: str) -> None:
    status, said = typed(capsys, line)
    assert sentence in said
    assert status == 2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("stak: tensorflow-2.10", "'stak' is not read; did you mean 'stack'?"),
        ("hostwright_stak: tensorflow-2.10", "'hostwright_stak' is not read; did you mean 'hostwright_stack'?"),
        ("hostwright_role: [base]", "'hostwright_role' is not read; did you mean 'hostwright_roles'?"),
        (
            "hostwright_reboot_timout: 2h",
            "'hostwright_reboot_timout' is not read; did you mean 'hostwright_reboot_timeout'?",
        ),
        ("artefacts: direct", "'artefacts' is not read; did you mean 'artifacts'?"),
        ("cuda_keep_repositry: false", "did you mean 'cuda_keep_repository'?"),
        ("cdua: {keep_repository: false}", "did you mean 'cuda'?"),
    ],
)
def test_a_misspelt_variable_is_a_warning_with_its_line_and_an_error_where_that_is_asked_for(
    site: Path, capsys: pytest.CaptureFixture[str], name: str, sentence: str
) -> None:
    (site / "inventory/hosts.yml").write_text(f"all:\n  hosts:\n    gpu01:\n      {name}\n")
    for line, expected in ("vars gpu01", 0), ("vars gpu01 --strict", 2):
        status, said = typed(capsys, line)
        assert status == expected
        assert f"{site}/inventory/hosts.yml:4:" in said
        assert sentence in said


@pytest.mark.parametrize(
    "name", ["slack: x", "track: x", "stacks: [a, b]", "hostwright_bmc_address: x", "site_stack: x"]
)
def test_a_variable_of_somebody_else_is_no_slip(site: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (site / "inventory/hosts.yml").write_text(f"all:\n  hosts:\n    gpu01:\n      {name}\n")
    assert "is not read" not in typed(capsys, "vars gpu01 --roles base")[1]


def test_an_empty_inventory_says_which_file_to_write(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "inventory/hosts.yml").write_text("# nothing yet\n")
    for line in "hosts", "plan all", "plan gpu01", "plan":
        status, said = typed(capsys, line)
        assert status == 2
        assert f"add them to {site}/inventory/hosts.yml, for example `all: {{hosts: {{gpu01: " in said
    (site / "inventory/hosts.yml").unlink()
    assert "create a hosts.yml there" in typed(capsys, "hosts")[1]


def test_outside_of_a_site(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also beside the tasks of another project."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other/tasks.py").write_text("raise SystemExit('the tasks of another project')\n")
    monkeypatch.chdir(tmp_path / "other")
    status, said = typed(capsys, "plan gpu01")
    assert status == 2
    assert "no site found: neither " in said
    assert "run `hostwright init DIR` to create one, or pass --site DIR" in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("from nope import x\n", "tasks.py:1: ModuleNotFoundError: No module named 'nope'"),
        ("x = 1\ny = = 2\n", "tasks.py:2: SyntaxError: invalid syntax"),
    ],
)
def test_a_mistake_in_the_tasks_of_a_site_has_its_line(
    site: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    (site / "tasks.py").write_text(text)
    status, said = typed(capsys, "hosts")
    assert status == 2
    assert said.startswith(f"{site}/{sentence}")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--ask-become-pass", "--ask-become-pass: no terminal to type the password on; set ansible_become_password"),
        ("--ask-vault-password", "--ask-vault-password: no terminal to type the password on; name a file or a program"),
    ],
)
def test_a_password_without_a_terminal(site: Path, tmp_path: Path, options: str, sentence: str) -> None:
    """In cron and in CI, a password is not read from a pipe, and not shown."""
    vaulted = "!vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n"
    (site / "inventory/group_vars/all.yml").write_text(f"stack: tensorflow-2.9\nours: {vaulted}")
    command = [sys.executable, "-m", "hostwright", "plan", "gpu01", options]
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(
        command, cwd=site, env=env, input="opensesame\n", capture_output=True, text=True, check=False,
        start_new_session=True,
    )  # fmt: skip
    assert sentence in " ".join(done.stderr.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert "opensesame" not in done.stderr and "Warning" not in done.stderr


def test_a_password_that_is_not_typed(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user presses Ctrl-D at the prompt."""

    def nothing(prompt: str, stream: object) -> str:
        raise EOFError

    monkeypatch.setattr("getpass.getpass", nothing)
    status, said = typed(capsys, "plan gpu01 --ask-become-pass")
    assert status == 2
    assert said.startswith("--ask-become-pass: no password was typed; ")


def test_a_state_directory_that_is_read_only_ends_no_verb_that_only_reads(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()  # a file in its place, because root may write to read-only directories
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "file"))
    for line in "hosts", "vars gpu01", "stacks":
        assert typed(capsys, line)[0] == 0
