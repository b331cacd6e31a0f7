"""The command at the beginning of a pipe that is closed early, as by ``head``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hostwright.common.errors import NOBODY_READS
from tests.places import PROJECT

CALL = """
import sys
from hostwright.common.request import Request
from hostwright.cli.exits import run
from hostwright.cli.tasks.site import hosts
sys.exit(run(lambda: hosts(Request("all", inventory=(sys.argv[1],), json=True))))
"""


def test_an_output_that_nobody_reads_is_no_crash(tmp_path: Path):
    hosts = ", ".join(f"gpu{number:05}: {{}}" for number in range(2000))  # more than a pipe's buffer
    (tmp_path / "hosts.yml").write_text(f"all: {{hosts: {{{hosts}}}}}")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(tmp_path)], cwd=PROJECT, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (NOBODY_READS, b"")


FOREIGN = """
import sys
from hostwright.cli.console import make_console
from hostwright.cli.views.shared import show_error
from hostwright.cli.exits import run
from hostwright.common.errors import HostError

def verb():
    make_console().print(show_error(HostError("gpu01", "no \\u2192 \\ufffd")))
    raise HostError("gpu02", "no \\u2192 \\ufffd")

sys.exit(run(verb))
"""


def test_a_terminal_of_ascii_shows_what_it_can():
    """In fabric 672, a host's output ended the work on all others."""
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN],
        cwd=PROJECT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "gpu01: no ? ?\n", "gpu02: no \\u2192 \\ufffd\n")
