"""Standard output and error in the states that users of other tools reported.

The expected results were written before they were tried.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.places import PROJECT
from tests.unit.cli.mistakes.desk import Desk

LONG = 200_000  #: bytes, more than the buffer of a pipe
SAYS = f"""
import sys
from hostwright.cli.shell import streams
streams.prepare()
streams.prepare()
print("x" * {LONG})
"""
#: two sentences on each stream, and the result
BOTH = """
import sys
from hostwright.cli.console import make_console
from hostwright.cli.exits import run
from hostwright.common.errors import InputError

def verb():
    make_console().print("one")
    make_console(stderr=True).print("two")
    raise InputError("three")

sys.exit(run(verb))
"""


def started(code: str, **how: int | dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], cwd=PROJECT, stdin=subprocess.DEVNULL, **how)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Return a site with two hosts that do not answer."""
    return Desk(tmp_path)


@pytest.fixture
def full() -> int:
    """Return a file that accepts no data."""
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_does_not_block_gets_every_byte(unbuffered: str) -> None:
    """Cases: ansible 77639 and 80108, rich 2492, honcho 168. Another program makes a shared pipe non-blocking; then
    data was lost, or the run ended."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    process = started(SAYS, stdout=writing, stderr=subprocess.PIPE, env=env)
    os.close(writing)
    got = bytearray()
    threading.Thread(target=process.wait).start()
    while part := os.read(reading, 1000):  # slower than the writer
        got += part
    os.close(reading)
    assert process.stderr is not None
    assert (process.wait(), process.stderr.read(), bytes(got)) == (0, b"", b"x" * LONG + b"\n")


def test_an_error_that_cannot_be_shown_keeps_its_status(full: int) -> None:
    """Cases: torbrowser-launcher 298, util-linux 4448. Standard error cannot be written."""
    process = started(BOTH, stdout=subprocess.PIPE, stderr=full)
    assert process.communicate()[0] == b"one\n"
    assert process.returncode == 2


def test_a_pipe_of_errors_that_nobody_reads_keeps_the_status() -> None:
    """Case: mypy 9453, ``2>&1 | head``."""
    reading, writing = os.pipe()
    os.close(reading)
    process = started(BOTH, stdout=subprocess.PIPE, stderr=writing)
    os.close(writing)
    assert process.communicate()[0] == b"one\n"
    assert process.returncode == 2


@pytest.mark.parametrize("words", ["hosts", "--help", "provision gpu01 --yes"])
def test_an_output_that_nobody_reads_has_one_status(desk: Desk, words: str) -> None:
    """Cases: mypy 9453, pip 4170, CanLab 24. This includes output through rich, which would exit with 1 at once."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "hostwright", *words.split()]
    env = desk.environment({"PYTHONUNBUFFERED": "1"})
    done = subprocess.run(command, cwd=desk.site, env=env, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_terminal_that_is_gone_is_no_mistake_of_ours(desk: Desk) -> None:
    """Cases: fabric 1583, cpython 76526, torbrowser-launcher 298. A closed terminal reports ``Input/output error``."""
    ours, theirs = pty.openpty()
    os.close(ours)
    command = [sys.executable, "-m", "hostwright", "hosts"]
    env = desk.environment({})
    done = subprocess.run(command, cwd=desk.site, env=env, stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    assert done.returncode == 141
    assert not (desk.state / "reports").exists()


@pytest.mark.parametrize("words", ["--help", "help run", "--list", "completion fish", "hosts"])
def test_help_in_ascii(desk: Desk, words: str) -> None:
    """Cases: mempalace 1122, B2 914, ansible 84408. Help contains characters that the terminal, or a system without
    locales, lacks."""
    no_locale = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for env in {"PYTHONIOENCODING": "ascii"}, no_locale:
        said = desk.types(words, env=env)
        assert (said.status, said.err) == (0, "")
        assert said.out.isascii()


def test_what_cannot_be_written_is_said_once(desk: Desk, full: int) -> None:
    """Cases: coreutils 10171, vsearch 243. The disk of standard output is full."""
    for words in ("--help", "--version", "hosts --json"):
        said = desk.types_into(full, words)
        assert (said.status, len(said.err.splitlines())) == (1, 1), said.err
        assert "No space left on device" in said.err


def closed(desk: Desk, words: str, *numbers: int) -> tuple[int, str, str]:
    """Run a call with these streams closed, as a shell does with ``>&-``."""
    close = " ".join(f"{number}>&-" for number in numbers)
    command = ["sh", "-c", f'exec "$0" -m hostwright {words} {close}', sys.executable]
    done = subprocess.run(command, cwd=desk.site, env=desk.environment({}), capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", ["hosts", "--help", "hosts --json", "completion bash", "provision gpu01 --yes"])
def test_an_output_that_is_closed(desk: Desk, words: str) -> None:
    """Cases: crudini 82, conan 17810. Python has no stream there, and ``print`` does nothing."""
    sentence = "standard output is closed, so nothing can be printed; redirect it to a file or /dev/null\n"
    assert closed(desk, words, 1) == (1, "", sentence)
    assert not (desk.state / "reports").exists()


def test_errors_that_are_closed_go_nowhere_else(desk: Desk) -> None:
    """Cases: py-shiny 1131, numpy 27013. Without standard error, ``print`` would write errors to standard output."""
    for words in "nosuch", "hosts nosuch", "plan --nosuch":
        assert closed(desk, words, 2) == (2, "", "")
        assert closed(desk, words, 0, 2) == (2, "", "")
    status, out, err = closed(desk, "hosts", 0, 2)
    assert (status, "2 hosts" in out, err) == (0, True, "")


@pytest.mark.parametrize("value", ["0", "false"])
def test_a_colour_that_is_not_forced(desk: Desk, value: str) -> None:
    """Cases: colorette 43, picocolors 101. ``FORCE_COLOR=0`` forces no colours."""
    said = desk.types("hosts", env={"FORCE_COLOR": value, "NO_COLOR": ""})
    assert said.status == 0
    assert "\x1b" not in said.out


@pytest.mark.parametrize("columns", ["0", "abc", "-5", "80x", ""])
def test_columns_that_are_none(desk: Desk, columns: str) -> None:
    """Cases: command-line-assistant 421, cowrie 40477, bat 535, io-console 159. An invalid width is ignored."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hostwright", "hosts"]
    env = desk.environment({"COLUMNS": columns, "LINES": columns, "TERM": "dumb"})
    with subprocess.Popen(command, cwd=desk.site, env=env, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while process.poll() is None or not shown:
            try:
                shown += os.read(ours, 65536)
            except OSError:  # it has ended
                break
    os.close(ours)
    assert process.returncode == 0
    assert b"gpu01  127.0.0.1" in shown


def test_a_document_is_whole_in_a_pipe_that_does_not_block(desk: Desk) -> None:
    """The same through a verb: an incomplete document is useless."""
    hosts = ", ".join(f"gpu{number:05}: {{}}" for number in range(3000))
    desk.write("inventory/hosts.yml", f"all: {{hosts: {{{hosts}}}}}\n")
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [sys.executable, "-m", "hostwright", "hosts", "--json"]
    with subprocess.Popen(command, cwd=desk.site, env=desk.environment({}), stdout=writing) as process:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            document = json.loads(pipe.read())
    assert process.returncode == 0
    assert len(document["hosts"]) == 3000
