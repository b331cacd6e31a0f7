"""How ``make test`` runs its tests: a failure that does not come again is named, and every other one is a failure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import twice

ONCE = """
def test_{name}():
    path = __import__("pathlib").Path(__file__).with_name("{name}")
    was = path.exists()
    path.touch()
    assert was, "the first time of {name}"
"""
ALWAYS = "def test_always(): assert 1 == 2\n"
SOUND = "def test_sound(): pass\n"
#: Python that hears Ctrl-C, also where these tests are run in the background
HEARD = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "tests.twice", f"--rootdir={folder}", "-c", os.devnull, "-n", "2", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_fails_once_is_told_in_full_and_named_at_the_end(tmp_path: Path) -> None:
    done = run(tmp_path, SOUND + ONCE.format(name="pause"))
    assert done.returncode == 0
    assert "the first time of pause" in done.stdout
    assert done.stdout.splitlines()[-1] == "UNSTEADY, failed above and passed by itself: test_it.py::test_pause"
    assert "1 passed" in done.stdout.partition("Once more")[2], "the sound one is not run again"


def test_what_fails_again_is_a_failure(tmp_path: Path) -> None:
    done = run(tmp_path, SOUND + ALWAYS + ONCE.format(name="pause"))
    assert done.returncode == 1
    assert "UNSTEADY" not in done.stdout


def test_many_failures_are_no_accident(tmp_path: Path) -> None:
    done = run(tmp_path, "".join(ONCE.format(name=f"pause{number}") for number in range(twice.MOST + 1)))
    assert done.returncode == 1
    assert "Once more" not in done.stdout


@pytest.mark.parametrize(("text", "status"), [(SOUND, 0), ("import nothing_of_this_name\n", 1), ("", 5)])
def test_the_status_is_pytests_where_no_test_fails(tmp_path: Path, text: str, status: int) -> None:
    done = run(tmp_path, text)
    assert done.returncode == status
    assert "Once more" not in done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_what_it_has_started(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, pathlib, time\n"
        "def test_long():\n"
        f"    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", HEARD, "-m", "tests.twice", f"--rootdir={tmp_path}", "-c", os.devnull, str(tmp_path)],
        start_new_session=True,  # a terminal sends Ctrl-C to all in the foreground
        stdout=subprocess.DEVNULL,
    )
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    assert process.wait(60) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
