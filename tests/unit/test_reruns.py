"""A test that failed once and ran again is named in the last line of the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import places, reruns

ONCE = """
def test_{name}():
    path = __import__("pathlib").Path(__file__).with_name("{name}")
    was = path.exists()
    path.touch()
    assert was, "the first time of {name}"
"""
MAY = "import pytest\npytestmark = pytest.mark.flaky(reruns=1)\n"


def run(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.reruns", f"--rootdir={folder}", "-c", os.devnull, *words, folder],
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_fails_once_is_named_in_the_last_line(tmp_path: Path) -> None:
    """By the process that prints, which is not the one that ran it."""
    done = run(tmp_path, MAY + ONCE.format(name="pause"), "-n", "1")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "RUN AGAIN, failed once: test_it.py::test_pause"


def test_a_module_that_starts_nothing_itself_or_by_another_is_not_marked() -> None:
    assert reruns.starts(__name__)
    assert not reruns.starts(places.__name__)
