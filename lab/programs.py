"""Run local programs from argument lists; a failure raises `LabError` with the last lines of output."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hostwright.common.errors import LabError

RESUME_S = 1.0  #: seconds between SIGCONT signals to a stopped program


def attempt(argv: Sequence[str | Path], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``argv``; return the result, whatever the exit status. Raises `LabError` if the program is missing."""
    try:
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise LabError(f"program {argv[0]} is not installed; run `python -m lab build`, which installs it") from error


def attend(argv: Sequence[str | Path], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``argv``, an ``nsenter`` command, and continue the command when it stops itself.

    At shutdown, systemd stops the child of ``nsenter`` for a moment, and ``nsenter`` stops with the child. A stopped
    ``nsenter`` never reaps its child, so PID 1 of the host would never exit.
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
                    given = None  # the first call already sent the input
                    process.send_signal(signal.SIGCONT)  # SIGCONT has no effect on a running program
        except BaseException:
            process.kill()
            raise


def run(argv: Sequence[str | Path], *, stdin: str = "") -> str:
    """Run ``argv``; return its standard output. Raises `LabError` with the last output if the program fails."""
    done = attempt(argv, stdin=stdin)
    if done.returncode != 0:
        raise LabError(_sentence(argv, done.returncode, done.stderr or done.stdout))
    return done.stdout


def run_logged(argv: Sequence[str | Path], log: Path, *, env: Mapping[str, str] | None = None) -> None:
    """Run ``argv`` with output to the file ``log``. Raises `LabError` with the name of the log if the program fails."""
    with log.open("ab") as output:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False, env=env)
    if done.returncode != 0:
        raise LabError(_sentence(argv, done.returncode, log.read_text(errors="replace")) + f"\n(full log: {log})")


def _sentence(argv: Sequence[str | Path], status: int, output: str) -> str:
    words = " ".join(str(word) for word in argv)
    tail = "\n".join(output.strip().splitlines()[-8:])
    return f"`{words[:300]}` ended with status {status}:\n{tail}"
