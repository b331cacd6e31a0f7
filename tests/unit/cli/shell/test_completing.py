"""The completions for each shell, requested as the shells do, and the imports for them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.apply.journal.selecting import SETS as RUN_SETS
from hostwright.audit.history.store import AUDIT_SETS
from hostwright.cli.opening import open_fleet
from hostwright.cli.program import program
from hostwright.cli.shell.completion import completing, names
from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request
from tests.places import PROJECT

HOSTS = "all: {hosts: {login: {}}, children: {rack3: {hosts: {gpu01: {}, gpu02: {}}}, rack4: {hosts: {gpu11: {}}}}}\n"
SLOW = ("rich", "pydantic", "paramiko", "fabric", "jinja2", "ClusterShell", "requests", "pytest", "hostwright.fleet")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site as the working directory, whose inventory no verb has read yet."""
    root = tmp_path / "site"
    assert init(Request(), str(root)) == 0
    (root / "inventory/hosts.yml").write_text(HOSTS)
    (root / "other.yml").write_text("all: {hosts: {other1: {}}}\n")
    (root / "inventory/stacks/ours.yml").touch()
    (root / "roles/motd").mkdir()
    (root / "roles/motd/__init__.py").touch()
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    for variable in ("HOSTWRIGHT_SITE", "HOSTWRIGHT_INVENTORY"):
        monkeypatch.setenv(variable, "")
    return root


def offered(*words: str) -> list[str]:
    return program.candidates(words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["provis"], ["provision"]),
        (["audit."], ["audit.diff", "audit.fleet", "audit.history"]),
        (["plan", "--h"], ["--hosts", "--help"]),
        (["plan", "--hosts", "gpu0"], ["gpu01", "gpu02"]),
        (["plan", "gpu0"], ["gpu01", "gpu02"]),
        (["plan", "gpu01,gpu0"], ["gpu01,gpu02"]),
        (["plan", "--hosts", "all,!gpu1"], ["all,!gpu11"]),
        (["plan", "@rack"], ["@rack3", "@rack4"]),
        (["plan", "--hosts=@rack4"], ["--hosts=@rack4"]),
        (["plan", "gpu01", "--json", "log"], ["login"]),
        (["verify", "@failed"], ["@failed"]),
        (["ssh", "log"], ["login"]),
        (["vars", "gpu01", "--roles", "mo"], ["motd"]),
        (["vars", "gpu01", "--roles", "motd,bas"], ["motd,base"]),
        (["mirror", "--stack", "our"], ["ours"]),
        (["rollback", "gpu01", "--to", "our"], ["ours"]),
        (["provision", "--prove", ""], ["quick", "full"]),
        (["provision", "--prove=q"], ["--prove=quick"]),
        (["power", "o"], ["on", "off"]),
        (["power", "on", "gpu1"], ["gpu11"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["plan", "--out", ""], []),  # a file: completed by the shell
        (["stacks", "x"], []),
        (["nosuch", "x"], []),
        (["--sit"], ["--site"]),
        (["plan", "--inventory", "/nonexistent", "gp"], []),
        (["plan", "--inventory=other.yml", "oth"], ["other1"]),
        (["plan", "--inventory", "other.yml", "--hosts", "oth"], ["other1"]),
    ],
)
def test_words_are_completed(site: Path, words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["provision", "--resume", ""], ["b", "a"]),
        (["provision", "--resume", "a"], ["a"]),
        (["provision", "--resume=b"], ["--resume=b"]),
        (["provision", "--resume", "--can"], ["--canary"]),
        (["provision", "--resume", "--canary", "1", "gpu0"], ["gpu01", "gpu02"]),
        (["plan", "gpu01,!@failed:"], ["gpu01,!@failed:b", "gpu01,!@failed:a"]),
        (["plan", "--hosts", "@untouched:a"], ["@untouched:a"]),
    ],
)
def test_runs_are_completed_where_one_is_continued_or_selected(
    site: Path, tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    for run in ("a", "b"):
        (tmp_path / "state/runs" / run).mkdir(parents=True)
    assert offered(*words) == expected


def test_the_latest_runs_come_first(site: Path, tmp_path: Path) -> None:
    for run in ("20261123t165746-7593", "20261124t000000-f833"):
        (tmp_path / "state/runs" / run).mkdir(parents=True)
    assert offered("runs.show", "") == ["last", "20261124t000000-f833", "20261123t165746-7593"]
    assert offered("runs.show", "--run", "20261123") == ["20261123t165746-7593"]


def test_sets_of_hosts_are_those_that_exist() -> None:
    assert set(completing.SETS) == {"all", *(f"@{name}" for name in (*RUN_SETS, *AUDIT_SETS))}


def test_a_verb_keeps_the_names_that_are_completed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the names from a program, which is not run for a completion."""
    program_file = site / "inventory/more"
    program_file.write_text('#!/bin/sh\necho run >> ran\necho \'{"cloud": {"hosts": ["cloud7"]}}\'\n')
    program_file.chmod(0o755)
    assert offered("plan", "cloud") == []
    assert not (site / "ran").exists() and not list(site.rglob("ran"))
    open_fleet(Request("all"))
    ran = [file.read_text() for file in site.rglob("ran")]
    assert offered("plan", "cloud") == ["cloud7"]
    assert [file.read_text() for file in site.rglob("ran")] == ran


def test_an_inventory_that_was_edited_is_read_again(site: Path, tmp_path: Path) -> None:
    assert offered("plan", "gpu1") == ["gpu11"]
    (kept,) = (tmp_path / "state/names").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    (site / "inventory/hosts.yml").write_text("all: {hosts: {gpu12: {}}}\n")
    os.utime(kept, (0, 0))
    assert offered("plan", "gpu1") == ["gpu12"]


def test_a_mistake_in_the_inventory_completes_what_was_known(site: Path, tmp_path: Path) -> None:
    assert offered("plan", "gpu1") == ["gpu11"]
    (kept,) = (tmp_path / "state/names").iterdir()
    (site / "inventory/hosts.yml").write_text("all: [\n")
    os.utime(kept, (0, 0))
    assert offered("plan", "gpu1") == ["gpu11"]


def test_a_state_directory_that_cannot_be_written_ends_no_completion(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "file"))
    assert offered("plan", "gpu1") == ["gpu11"]


#: runs in its own process, as for a shell; prints the imported modules afterwards
ASKING = f"""
import json, sys
from hostwright.cli.program import program
found = program.candidates(sys.argv[1:])
print(json.dumps([found, [name for name in {SLOW!r} if name in sys.modules]]))
"""


@pytest.mark.parametrize("words", [["pro"], ["plan", "gpu0"], ["vars", "--roles", "b"], ["mirror", "--stack", "o"]])
def test_a_completion_waits_for_nothing_that_verbs_need(site: Path, words: list[str]) -> None:
    """Its time is the time of its imports: 0.15 s of CPU, most of it Invoke."""
    names.known()
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", ASKING, *words]
    done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True)
    found, slow = json.loads(done.stdout)
    assert found
    assert slow == []


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH with a ``hostwright`` that runs this checkout's code."""
    command = tmp_path / "bin/hostwright"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m hostwright "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}:{os.environ['PATH']}"


#: input for a shell with its completion script loaded: the line, and the command that prints the candidates
BASH = """
eval "$(hostwright completion bash)"
COMP_LINE=$1 COMP_POINT=$2
_hostwright hostwright "$3"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "word", "expected"),
    [
        ("hostwright provis", "provis", ["provision"]),
        ("hostwright plan ", "", ["login", "gpu01", "gpu02", "gpu11", "@all", "@rack3", "@rack4", "@ungrouped"]),
        ("hostwright plan --hosts=@rack", "@rack", ["@rack3", "@rack4"]),  # bash breaks words at =
        ("hostwright plan --hosts=", "", ["login"]),
        ("hostwright plan gpu01,gpu0", "gpu01,gpu0", ["gpu01,gpu02"]),
        ("hostwright plan gpu1 --json", "gpu1", ["gpu11"]),  # the cursor is before --json
        ("hostwright plan --out ", "", [""]),  # files, completed by bash itself
        # quoted words are one word, and not a verb (clap 1444, yargs 2452)
        ("hostwright provision --var 'note=1 plan now' --can", "--can", ["--canary"]),
        ('hostwright provision --var "note=1 plan now" --can', "--can", ["--canary"]),
        ("hostwright provision --var note=1\\ plan\\ now --can", "--can", ["--canary"]),
        ('hostwright plan --hosts "gpu01,gpu0', "gpu01,gpu0", ["gpu01,gpu02"]),  # quotes break words, too
        ('hostwright plan --hosts="@rack', "@rack", ["@rack3", "@rack4"]),
    ],
)
def test_bash_offers_what_it_can_replace(site: Path, path: str, line: str, word: str, expected: list[str]) -> None:
    point = str(len("hostwright plan gpu1") if line.endswith(" --json") else len(line))
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path}
    command = ["bash", "-c", BASH, "bash", line, point, word]
    done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[: len(expected)] == expected
    assert done.stderr == ""


def test_bash_asks_a_command_that_was_called_otherwise(site: Path, path: str) -> None:
    """Cases: symfony-console-completion 70, bash keeps the tilde as typed; kubectl 1466, an alias."""
    folder = Path(path.partition(":")[0])
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path, "HOME": str(folder.parent)}
    for program_name in "~/bin/hostwright", f"{folder}/hostwright", "hw":
        line = f"{program_name} provis"
        called = BASH.replace("_hostwright hostwright", f"_hostwright '{program_name}'")
        command = ["bash", "-c", called, "bash", line, str(len(line)), "provis"]
        done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("provision\n", "")


ZSH = """
compdef() { print -r -- "compdef $*"; }
compadd() { shift; print -rl -- "$@"; }
_files() { print -r -- FILES; }
eval "$(hostwright completion zsh)"
words=("${(@)argv}") CURRENT=$#argv
_hostwright
"""
FISH = """
hostwright completion fish | source
for word in (complete -C "$argv[1]")
    echo $word
end
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh on this machine")
def test_zsh_offers_words_and_else_files(site: Path, path: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path}
    env["HOME"] = str(Path(path.partition(":")[0]).parent)
    for program_name, words, expected in (
        ("hostwright", ["gpu0"], ["gpu01", "gpu02"]),
        ("~/bin/hostwright", ["gpu0"], ["gpu01", "gpu02"]),
        ("hw", ["gpu0"], ["gpu01", "gpu02"]),
        ("hostwright", ["--out", ""], ["FILES"]),
    ):
        command = ["zsh", "-f", "-c", ZSH, "zsh", program_name, "plan", *words]
        done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["compdef", "_hostwright", "hostwright", *expected]
        assert done.stderr == ""


#: the script as a file in zsh's own search path
FPATH = """
fpath=($argv[1] $fpath)
autoload -Uz compinit && compinit -u -D
print -r -- "$_comps[hostwright]"
compadd() { shift; print -rl -- "$@"; }
words=(hostwright plan gpu0) CURRENT=3
_hostwright
_hostwright
"""


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh on this machine")
def test_zsh_finds_the_script_as_a_file(site: Path, path: str, tmp_path: Path) -> None:
    """Case: click-completion 24. Such files begin with ``#compdef``."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/_hostwright").write_text(completing.script("zsh"))
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path}
    command = ["zsh", "-f", "-c", FPATH, "zsh", str(tmp_path / "functions")]
    done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["_hostwright", *2 * ["gpu01", "gpu02"]]
    assert done.stderr == ""


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish on this machine")
def test_fish_offers_words_and_else_files(site: Path, path: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path, "HOME": str(Path(path.partition(":")[0]).parent)}
    for line, expected in (
        ("hostwright plan gpu0", ["gpu01", "gpu02"]),
        ("~/bin/hostwright plan gpu0", ["gpu01", "gpu02"]),
        ("hostwright plan --out requ", ["requirements.txt"]),
    ):
        command = ["fish", "-c", FISH, line]
        done = subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True)
        assert done.stdout.split() == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_invokes_own_completion_goes_on_working(site: Path, shell: str) -> None:
    """A loaded ``invoke --print-completion-script`` still works, also for this command."""
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}

    def said(*words: str) -> str:
        command = [sys.executable, "-m", *words]
        return subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=True).stdout

    assert "--complete -- " in said("invoke", "--print-completion-script", shell)
    for program_name in "invoke", "hostwright":
        assert "provision" in said(program_name, "--complete", "--", program_name, "prov").splitlines()
        assert "--roles" in said(program_name, "--complete", "--", program_name, "plan", "--ro").splitlines()
    assert "invoke" not in completing.script(shell).replace("hostwright", "")


def test_a_shell_that_there_is_no_completion_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        program.run(["hostwright", "completion", "zhs"])
    assert end.value.code == 2
    assert capsys.readouterr().err == "completion: unknown shell 'zhs'; did you mean 'zsh'?\n"
