"""An audit of 200 hosts beside ``ssh host true`` on the same hosts, alternated in one run.

    .venv/bin/python -m benchmarks.audit

All "hosts" are this machine, by a real sshd on 127.0.0.1: what they have to do for an answer (some hundred questions)
takes its cores too, so the wall is that of a fleet that shares one machine. What the controller itself costs is in the
CPU column: user and system time of ``invoke`` and, for the base, of all ``ssh`` clients together. The base uses
curve25519, the key exchange that costs least, and as many connections at once as the audit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import yaml

from hostwright.fleet import PROJECT
from tests.lab.sshd import Sshd, running

INVOKE = Path(sys.executable).with_name("invoke")


@dataclass(frozen=True)
class Cost:
    """Seconds of one round: on the wall, and of the controller's processors."""

    wall_s: float
    cpu_s: float


def measure(work: Callable[[], None]) -> Cost:
    """What ``work``, whose processes are children of this one, costs."""
    before, began_s = os.times(), time.perf_counter()
    work()
    wall_s, after = time.perf_counter() - began_s, os.times()
    return Cost(
        wall_s,
        after.children_user - before.children_user + after.children_system - before.children_system,
    )


def audit(folder: Path, hosts: int) -> None:
    """One ``invoke audit`` of all hosts; each must have answered."""
    state = {**os.environ, "HOSTWRIGHT_STATE": str(folder / "state")}
    words = [
        str(INVOKE),
        "audit",
        "--inventory",
        str(folder / "inventory"),
        "--csv",
        str(folder / "audit.csv"),
        "--json",
    ]
    done = subprocess.run(words, cwd=PROJECT, env=state, capture_output=True, text=True, check=False)
    answered = done.stdout.count('"sentence": ""')
    if answered != hosts:
        raise SystemExit(f"{answered} of {hosts} hosts answered: {done.stdout[:500]}\n{done.stderr[-2000:]}")


def ssh(sshd: Sshd, hosts: int, at_once: int) -> None:
    """``ssh host true`` for each host."""
    words = [
        "ssh", "-F", "none", "-p", str(sshd.port), "-i", str(sshd.key), "-o", "KexAlgorithms=curve25519-sha256",
        "-o", f"UserKnownHostsFile={sshd.known_hosts}", "-o", "IdentitiesOnly=yes", "root@127.0.0.1", "true",
    ]  # fmt: skip
    with ThreadPoolExecutor(at_once) as pool:
        for done in pool.map(lambda _: subprocess.run(words, stdin=subprocess.DEVNULL, check=True), range(hosts)):
            done.check_returncode()


def inventory(folder: Path, sshd: Sshd, hosts: int) -> None:
    """An inventory in which this machine stands under many names."""
    names = {f"gpu{number:04}": {} for number in range(1, hosts + 1)}
    common = {
        "ansible_host": "127.0.0.1",
        "ansible_port": sshd.port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(sshd.key),
        "hostwright_known_hosts": str(sshd.known_hosts),
    }
    (folder / "inventory").mkdir()
    text = yaml.safe_dump({"all": {"hosts": names, "vars": common}})
    (folder / "inventory" / "hosts.yml").write_text(text, encoding="utf-8")


def main() -> None:
    """Measure and print one line a case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=32)
    options = parser.parse_args()
    found: dict[str, list[Cost]] = {"ssh true": [], "invoke audit": []}
    with tempfile.TemporaryDirectory(prefix="hwbench-") as name, running() as sshd:
        folder = Path(name)
        inventory(folder, sshd, options.hosts)
        for _ in range(options.rounds):
            found["ssh true"].append(measure(lambda: ssh(sshd, options.hosts, options.at_once)))
            found["invoke audit"].append(measure(lambda: audit(folder, options.hosts)))
    print(f"{options.hosts} hosts, {options.rounds} rounds, alternated; median (least)")
    for what, costs in found.items():
        walls, cpus = [cost.wall_s for cost in costs], [cost.cpu_s for cost in costs]
        each = median(cpus) / options.hosts * 1000
        print(
            f"{what:13} wall {median(walls):6.2f} s ({min(walls):.2f})   controller CPU {median(cpus):6.2f} s "
            f"({min(cpus):.2f}), {each:.1f} ms a host"
        )


if __name__ == "__main__":
    main()
