"""The benchmark from nothing: a case of replayed hosts makes its lab, provisions a host, records it and is measured."""

from __future__ import annotations

import subprocess
import sys

from tests.places import PROJECT


def test_two_replayed_hosts_answer_a_plan_and_an_audit_as_the_recorded_one_did() -> None:
    words = ("--cases", "thousand", "--hosts", "2", "--rounds", "1", "--force")
    command = [sys.executable, "-m", "benchmarks", "run", *words]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if " of the controller's" in line]
    measured = {line[8:].strip().partition(":")[0] for line in lines}  # behind the time of day
    assert measured == {"ssh true, 2", "hostwright plan, 2", "hostwright audit, 2"}
