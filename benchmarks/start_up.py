"""How long a user waits: ``invoke --list`` and ``invoke plan`` of hosts that are as desired, from the shell prompt.

    .venv/bin/python benchmarks/start_up.py --hosts gpu01,gpu02

The goals are 0.3 s for the list and 1.5 s for the plan of two green hosts. Walls depend on the machine: the best of
several runs is what the program costs, the median is what you feel.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

INVOKE = str(Path(sys.executable).with_name("invoke"))


def measure(words: list[str], runs: int) -> list[float]:
    """Wall seconds of each run of ``invoke WORDS``; the first, which fills caches, is not counted."""
    seconds = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        subprocess.run([INVOKE, *words], capture_output=True, check=True)
        seconds.append(time.perf_counter() - started)
    return seconds[1:]


def main() -> None:
    """Measure and print one line a command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", default="gpu01,gpu02")
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    for words in (["--list"], ["plan", "--hosts", options.hosts]):
        seconds = measure(words, options.runs)
        print(f"{min(seconds):.2f} s best, {statistics.median(seconds):.2f} s median  invoke {' '.join(words)}")


if __name__ == "__main__":
    main()
