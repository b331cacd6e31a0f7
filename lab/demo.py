"""Demo (``make demo``): one command turns two bare hosts into verified hosts; running it again changes nothing.

The program prints each command before it runs, and stops at the first failure.
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
    ("boot two bare lab hosts with real systemd, sshd and apt; built once, then cached", ["lab.up", "--hosts", HOSTS]),
    ("fetch and verify the stack's files once", ["mirror", "--stack", "lab"]),
    ("install the whole stack on the bare hosts", ["provision", "--hosts", HOSTS]),
    ("test every layer on the hosts", ["verify", "--hosts", HOSTS]),
    ("the same command again: nothing to do", ["provision", "--hosts", HOSTS]),
)


def main() -> int:
    """Run the demo; return the exit status. The lab is removed unless ``HOSTWRIGHT_KEEP_LAB`` is set."""
    begun = time.monotonic()
    times: list[tuple[str, float]] = []
    try:
        for why, words in STORY:
            started = time.monotonic()
            status = _say_and_run(why, words)
            times.append((f"invoke {' '.join(words)}", time.monotonic() - started))
            if status:
                print(f"demo: the command failed with exit status {status}", file=sys.stderr)
                return status
    finally:
        if not os.environ.get("HOSTWRIGHT_KEEP_LAB"):
            _say_and_run("take the lab down; the cache stays for the next run", ["lab.down"])
    print()
    for command, seconds in times:
        print(f"{seconds:8.1f} s  {command}")
    print(f"{time.monotonic() - begun:8.1f} s  total")
    return 0


def _say_and_run(why: str, words: list[str]) -> int:
    print(f"\n# {why}\n$ invoke {' '.join(words)}", flush=True)
    invoke = Path(sys.executable).with_name("invoke")
    return subprocess.run(
        [str(invoke if invoke.exists() else shutil.which("invoke")), *words],
        cwd=CHECKOUT,
        # the demo may skip confirmations, because the demo created these hosts
        env={**os.environ, "HOSTWRIGHT_YES": "1"},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
