"""``run`` and ``ssh`` as typed: the output of many hosts and of lying hosts, and exit statuses."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from hostwright.apply.commands import remote
from hostwright.apply.commands.remote import CommandResult, Lifeline, RemoteCommand, run_command
from hostwright.apply.events import HostEnded
from hostwright.apply.rollout.rollout import Results
from hostwright.apply.run import RunResults
from hostwright.cli import console
from hostwright.cli.views.reaching import commands
from hostwright.common.errors import HostError, Refused, Unreachable
from hostwright.transport import Output
from hostwright.transport.root.rootshell import RootShell
from tests.places import PROJECT
from tests.unit.support.sshsite import processes, ssh_site, until

COMMAND = RemoteCommand(("uname", "-r"))


def result(host: str, stdout: str = "5.10\n", status: int | None = 0, **more: Any) -> CommandResult:
    return CommandResult(host, more.get("end", "exited"), status, stdout, more.get("stderr", ""), 0.5)


def ended(*values: CommandResult, errors: tuple[HostError, ...] = (), untouched: tuple[str, ...] = ()) -> Any:
    names = (*(each.host for each in values), *(error.host for error in errors), *untouched)
    because = "stopped by the operator" if untouched else ""
    status = 130 if untouched else int(bool(errors) or not all(each.passed for each in values))
    return RunResults("20261124t000000-aaaa", Results(values, errors, untouched, because, names), status)


def piped(run: Any, command: RemoteCommand = COMMAND) -> list[str]:
    out = io.StringIO()
    with redirect_stdout(out):
        commands.show_commands(command, run, as_json=False)
    return out.getvalue().splitlines()


FLEET = ended(
    *(result(f"gpu{number:03}", "5.10\n") for number in range(1, 290)),
    *(result(f"gpu{number:03}", "5.15\n") for number in range(290, 297)),
    result("gpu297", "", 1, stderr="uname: oh\n"),
    result("gpu298", "5.", None, end="time limit"),
    errors=(Unreachable("gpu299", "gpu299:22 refuses the connection"),),
    untouched=("gpu300",),
)


def test_a_fleet_fits_on_a_screen_and_what_failed_is_at_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    commands.show_commands(COMMAND, FLEET, took_s=61.0, as_json=False)
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "gpu[001-289] (289 hosts): exit 0",
        "  │ 5.10",
        "gpu[290-296] (7 hosts): exit 0",
        "  │ 5.15",
        "gpu297: exit 1",
        "  standard error:",
        "  │ uname: oh",
        "gpu298: killed after 60 s (--timeout)",
        "  │ 5.",
        "300 hosts in 1 min 01 s: 296 exit 0 (2 different outputs), 1 exit 1, 1 killed after 60 s (--timeout), "
        "1 unreachable, 1 untouched (stopped by the operator)",
        "every output: invoke runs.show --run 20261124t000000-aaaa --steps",
    ]
    assert err.startswith("gpu299: gpu299:22 refuses the connection")


def test_the_document_keeps_to_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    commands.show_commands(COMMAND, FLEET, as_json=True)
    text = capsys.readouterr().out
    assert text.isascii() and text.count("\n") == 1
    schema = json.loads((PROJECT / "docs/schemas/look/command.json").read_text())
    document = json.loads(text)
    jsonschema.validate(document, schema)
    assert document.keys() == schema["properties"].keys()
    assert document["hosts"][0].keys() == schema["$defs"]["CommandResult"]["properties"].keys()


LIES = "\x1b[2J\x1b]0;owned\x07\rgpu01: exit 0\x0bgpu02: exit 0\u2028gpu03\u202e\x85x\x00\x9b31m\u200b\n\tkept\r\n"


def test_what_a_host_says_begins_no_line_and_moves_no_cursor() -> None:
    lines = piped(ended(result("gpu01", LIES, stderr=LIES)))
    assert len(lines) == 8
    for line in (*lines[1:3], *lines[4:6]):
        assert line.startswith("  │ ")
        assert line.replace("\t", "").isprintable()
    assert lines[2] == "  │ \tkept"


def test_the_beginning_of_a_line_is_kept() -> None:
    assert piped(ended(result("gpu01", "\n   deep\n\n  less\n\n")))[1:-2] == [
        "  │ ",
        "  │    deep",
        "  │ ",
        "  │   less",
        "  │ ",
    ]


@pytest.mark.parametrize("width", [20, 60, 80, 120, 200])
def test_a_long_line_is_wrapped_deeper_in_a_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        commands, "Console", lambda **_: Console(file=screen, force_terminal=True, width=width, color_system=None)
    )
    commands.show_commands(COMMAND, ended(result("gpu01", "word " * 60 + "x" * 300)), as_json=False)
    lines = screen.getvalue().splitlines()
    inside = lines[1 : next(number for number, line in enumerate(lines) if line.startswith("1 host"))]
    assert len(inside) > 1
    for line in inside:
        assert line.startswith("  ") and len(line) <= width


def test_the_hosts_that_are_waited_for_are_named_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr(console, "make_console", lambda **_: screen)
    view = commands.CommandView().show
    with view([SimpleNamespace(name=f"gpu0{number}") for number in (1, 2, 3)], "run1") as emit:  # type: ignore[list-item]
        emit(HostEnded("gpu01", "ran"))
    assert "left: gpu[02-03]" in screen.file.getvalue()  # type: ignore[attr-defined]


def test_a_pipe_gets_lines_as_they_are() -> None:
    long = "word " * 100
    assert piped(ended(result("gpu01", long)))[1] == f"  │ {long}"


def test_a_signal_is_named() -> None:
    assert piped(ended(result("gpu01", "", 137)))[0] == "gpu01: exit 137 (SIGKILL), no output"


class Liar:
    """A session in which a command returns whatever the host sends."""

    def __init__(self, stderr: str, stdout: bytes = b"", *, truncated: bool = False):
        self.host = type("Host", (), {"name": "gpu01"})
        self._stderr, self._stdout, self._truncated = stderr, stdout, truncated

    def run(self, *_: object, **__: object) -> Output:
        return Output(0, self._stdout, self._stderr.encode("utf-8", "surrogateescape"), self._truncated, 0.1)


def told(monkeypatch: pytest.MonkeyPatch, session: Liar) -> CommandResult:
    monkeypatch.setattr(remote, "new_nonce", lambda: "N0")
    return run_command(RootShell(session), COMMAND, Lifeline(), 1000)  # type: ignore[arg-type]


@pytest.mark.parametrize("said", ["", "\nN0", "\nN1 0\n", "\nN0 zero\n", "\nN0 -1\n", "\nN0 " + "9" * 5000 + "\n"])
def test_a_host_that_does_not_say_how_a_command_ended_is_an_error(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreachable, match="the exit status is unknown"):
        told(monkeypatch, Liar(f"oh{said}"))


def test_bytes_that_are_no_text_are_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    one = told(monkeypatch, Liar("oh\n\nN0 0\n", b"a\xff\0b"))
    assert (one.stdout, one.stderr, one.status) == ("a\ufffd\ufffdb", "oh\n", 0)
    json.dumps(one.stdout).encode("ascii")


def test_a_host_that_cannot_keep_a_command_from_root_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="setpriv"):
        told(monkeypatch, Liar("\nN0 setpriv\n"))


def typed(site: Path, *words: str) -> list[str]:
    # in a job that a shell runs in the background, Ctrl-C would be ignored
    del site
    return ["env", "--default-signal=INT,TERM", sys.executable, "-m", "hostwright", *words]


@contextmanager
def started(site: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "HOSTWRIGHT_STATE": str(site.parent / "state")}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        typed(site, *words), cwd=site, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("run")
    with ssh_site(root / "site", "gpu01", "gpu02", gone=("gpu09",)):
        yield root / "site"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_the_command_on_every_host_and_shows_what_there_is(site: Path, number: int) -> None:
    mark = f"4200{int(number)}.{os.getpid()}"  # unique to this test
    line = f"echo begun; (trap '' TERM; sleep {mark}; sleep {mark}) & sleep {mark}"
    with started(site, "run", "--hosts", "gpu01,gpu02", "--", line) as process:
        assert until(lambda: len(processes(mark)) == 4)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert processes(mark) == []
    assert process.returncode == 130, err
    assert out.splitlines()[:2] == ["gpu[01-02] (2 hosts): stopped by the operator", "  │ begun"]
    assert re.fullmatch(r"2 hosts in [0-9.]+ s: 2 stopped by the operator", out.splitlines()[-2])
    assert out.splitlines()[-1].startswith("every output: ")


def test_words_behind_the_dashes_are_the_commands(site: Path) -> None:
    with started(site, "run", "--hosts", "gpu01", "--", "printf", "%s|", "a  b", "--", "--hosts", "*") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[1]) == (0, "  │ a  b|--|--hosts|*|"), err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "--hosts", "gpu01"), "--: no command is given; write it after two dashes"),
        (("run", "--hosts", "gpu01", "--"), "--: no command is given; write it after two dashes"),
        (("run", "--", "true"), "--hosts: no hosts are named"),
        (
            ("run", "--hosts", "gpu01", "--timeout", "soon", "--", "true"),
            "--timeout: found 'soon', expected a duration",
        ),
        (("run", "--hosts", "gpu01", "--timeout", "2d", "--", "true"), "--timeout: found 2d, expected at most 24h"),
        (("run", "--hosts", "gpu01", "--force", "--", "true"), "--force: works only with --root"),
        (("ssh", "gpu77"), "there is no host gpu77 in the inventory"),
        (("ssh", "gpu0[1-2]"), "ssh: gpu0[1-2] selects gpu[01-02]; name one host"),
    ],
)
def test_mistakes_are_named_before_any_host_is_asked(site: Path, words: tuple[str, ...], sentence: str) -> None:
    with started(site, *words) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert sentence in err


def test_ssh_becomes_ssh(site: Path) -> None:
    with started(site, "ssh", "gpu01", "--", "printf", "%s|", "a  b", "$HOME") as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "a  b|$HOME|"), err
    with started(site, "ssh", "gpu02", "--", "exit 7") as process:
        process.communicate(timeout=60)
    assert process.returncode == 7


def test_there_is_no_ssh_to_this_machine(site: Path) -> None:
    with started(site, "ssh", "me", "--inventory", "inventory", "--inventory", str(_local(site))) as process:
        err = process.communicate(timeout=60)[1]
    assert process.returncode == 2
    assert "me is this machine (ansible_connection: local)" in err


def _local(site: Path) -> Path:
    path = site.parent / "local.yml"
    path.write_text(json.dumps({"all": {"hosts": {"me": {"ansible_connection": "local"}}}}))
    return path
