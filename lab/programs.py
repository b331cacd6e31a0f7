"""Runs local programs from argument lists and turns their failures into one sentence."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hostwright.common.errors import LabError

RESUME_S = 1.0  #: the longest wait of a program that stopped itself


def attempt(argv: Sequence[str | Path], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program and return how it ended, well or not. Raises `LabError` only if it does not exist."""
    try:
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise LabError(f"the program {argv[0]} is missing on this machine; `python -m lab build` gets it") from error


def attend(argv: Sequence[str | Path], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """As ``attempt``, for ``nsenter``: it stops when its program is stopped, and waits until somebody continues it.

    systemd stops everything for a moment when a host goes down. A stopped parent that does not notice its program's end
    keeps the host's PID 1 from ending forever.
    """
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as process:
        given: str | None = stdin
        try:
            while True:
                try:
                    output, error = process.communicate(given, timeout=RESUME_S)
                    return subprocess.CompletedProcess(argv, process.returncode, output, error)
                except subprocess.TimeoutExpired:
                    given = None  # it has been sent
                    process.send_signal(signal.SIGCONT)  # no effect on a running program
        except BaseException:
            process.kill()
            raise


def run(argv: Sequence[str | Path], *, stdin: str = "") -> str:
    """Run a program and return its standard output. Raises `LabError` with its last lines if it fails."""
    done = attempt(argv, stdin=stdin)
    if done.returncode != 0:
        raise LabError(_sentence(argv, done.returncode, done.stderr or done.stdout))
    return done.stdout


def run_logged(argv: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None) -> None:
    """Run a long program with its output in ``log``. Raises `LabError` that names the log if it fails."""
    with log.open("ab") as output:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, env=env)
    if done.returncode != 0:
        raise LabError(_sentence(argv, done.returncode, log.read_text(errors="replace")) + f"\n(all of it: {log})")


def _sentence(argv: Sequence[str | Path], status: int, output: str) -> str:
    words = " ".join(str(word) for word in argv)
    tail = "\n".join(output.strip().splitlines()[-8:])
    return f"`{words[:300]}` ended with status {status}:\n{tail}"
