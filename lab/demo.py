"""``make demo``: two bare hosts, one command, two verified hosts, and a second run that finds nothing to do.

You would type the same commands yourself; the demo prints and runs them, and stops at the first failure.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from lab.config import CHECKOUT

HOSTS = "gpu01,gpu02"
STORY = (
    ("a lab of two bare hosts: real systemd, sshd, apt; built once, then kept", ["lab.up", "--hosts", HOSTS]),
    ("the files of the stack, fetched and checked once", ["mirror", "--stack", "lab"]),
    ("from bare hosts to the whole stack", ["provision", "--hosts", HOSTS]),
    ("every layer checked by what it does", ["verify", "--hosts", HOSTS]),
    ("again: nothing is left to do", ["provision", "--hosts", HOSTS]),
)


def main() -> int:
    """Run the demo; take the lab down again unless ``HOSTWRIGHT_KEEP_LAB`` is set."""
    begun = time.monotonic()
    times: list[tuple[str, float]] = []
    try:
        for why, words in STORY:
            started = time.monotonic()
            status = _say_and_run(why, words)
            times.append((f"invoke {' '.join(words)}", time.monotonic() - started))
            if status:
                print(f"demo: that ended with status {status}", file=sys.stderr)
                return status
    finally:
        if not os.environ.get("HOSTWRIGHT_KEEP_LAB"):
            _say_and_run("the lab taken down; what was built is kept for the next time", ["lab.down"])
    print()
    for command, seconds in times:
        print(f"{seconds:8.1f} s  {command}")
    print(f"{time.monotonic() - begun:8.1f} s  in all")
    return 0


def _say_and_run(why: str, words: list[str]) -> int:
    print(f"\n# {why}\n$ invoke {' '.join(words)}", flush=True)
    invoke = Path(sys.executable).with_name("invoke")
    return subprocess.run(
        [str(invoke if invoke.exists() else shutil.which("invoke")), *words],
        cwd=CHECKOUT,
        env={**os.environ, "HOSTWRIGHT_YES": "1"},  # its hosts are its own, whoever watches
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
