"""Run pytest; what fails beside many other tests is run once more, by itself: ``python -m tests.twice ARGUMENT…``.

Of 17,000 tests on two busy cores one now and then meets a pause that its author did not think of. Such a failure is
printed in full, and named again as the last line; it is a bug of the test, or of the program, that is still to be
mended. It does not hold up everybody else's work. What fails again, or comes with others, fails.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pytest import ExitCode

MOST = 2  #: failures that may be accidents: more have one cause, and it is no pause


def main(arguments: Sequence[str]) -> int:
    """Pytest's exit status: of the first run, or of the second where there is one."""
    with tempfile.TemporaryDirectory() as cache:
        pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        status = _run(pytest)
        failed = _failed(Path(cache))
        if status != ExitCode.TESTS_FAILED or not 0 < len(failed) <= MOST or not all("::" in test for test in failed):
            return status
        print(f"\nOnce more, without other tests beside it: {', '.join(failed)}", flush=True)
        again = _run([*pytest, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"])
    if again == ExitCode.OK:
        print(f"UNSTEADY, failed above and passed by itself: {', '.join(failed)}", flush=True)
    return again


def _failed(cache: Path) -> list[str]:
    """The tests that pytest remembers as failed; and files, where one cannot be read."""
    try:
        return sorted(json.loads((cache / "v/cache/lastfailed").read_text()))
    except FileNotFoundError:
        return []


def _run(command: Sequence[str]) -> int:
    """Run it to its end: Ctrl-C reaches it as it reaches us, and it then stops what it has started."""
    process = subprocess.Popen(command)
    signal.signal(signal.SIGINT, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: process.send_signal(number))
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
