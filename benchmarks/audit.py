"""An audit of 200 hosts beside ``ssh host true`` on the same hosts, alternated in one run.

    .venv/bin/python -m benchmarks.audit

All "hosts" are this machine, by a real sshd on 127.0.0.1: what they have to do for an answer (some hundred questions)
takes its cores too, so the wall is that of a fleet that shares one machine. How much of it that is, the third case
shows: ``ssh host sh`` with the same questions, whose answers nobody reads. What the controller itself costs is in the
CPU column: user and system time of ``invoke`` and, for the others, of all ``ssh`` clients together. These use
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

from hostwright.audit.judging.judging import audit_probes
from hostwright.fleet import Fleet
from hostwright.plan import probing
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


def audit(folder: Path, hosts: int, at_once: int) -> None:
    """One ``invoke audit`` of all hosts; each must have answered."""
    state = {**os.environ, "HOSTWRIGHT_STATE": str(folder / "state")}
    place = str(folder / "inventory")
    words = [str(INVOKE), "audit", "--inventory", place, "--at-once", str(at_once), "--json"]
    done = subprocess.run(words, cwd=Path(__file__).parents[1], env=state, capture_output=True, text=True, check=False)
    answered = done.stdout.count('"sentence": ""')
    if answered != hosts:
        raise SystemExit(f"{answered} of {hosts} hosts answered: {done.stdout[:500]}\n{done.stderr[-2000:]}")


def questions(folder: Path) -> bytes:
    """What the audit asks a host, as one program."""
    member = Fleet.load(folder / "inventory").members("gpu0001")[0]
    return "\n".join(probing.programs(audit_probes(member), probing.new_nonce())).encode()


def ssh(sshd: Sshd, hosts: int, at_once: int, command: str, stdin: bytes = b"") -> None:
    """``ssh host COMMAND`` for each host."""
    words = [
        "ssh", "-F", "none", "-p", str(sshd.port), "-i", str(sshd.key), "-o", "KexAlgorithms=curve25519-sha256",
        "-o", f"UserKnownHostsFile={sshd.known_hosts}", "-o", "IdentitiesOnly=yes", "root@127.0.0.1", command,
    ]  # fmt: skip

    def one(_: int) -> None:
        subprocess.run(words, input=stdin, capture_output=True, check=True)

    with ThreadPoolExecutor(at_once) as pool:
        for _ in pool.map(one, range(hosts)):
            pass


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
    found: dict[str, list[Cost]] = {"ssh true": [], "ssh, same questions": [], "invoke audit": []}
    with tempfile.TemporaryDirectory(prefix="hwbench-") as name, running() as sshd:
        folder = Path(name)
        inventory(folder, sshd, options.hosts)
        asked = questions(folder)
        for _ in range(options.rounds):
            for what, work in (
                ("ssh true", lambda: ssh(sshd, options.hosts, options.at_once, "true")),
                ("ssh, same questions", lambda: ssh(sshd, options.hosts, options.at_once, "/bin/sh", asked)),
                ("invoke audit", lambda: audit(folder, options.hosts, options.at_once)),
            ):
                found[what].append(measure(work))
    print(f"{options.hosts} hosts, {options.rounds} rounds, alternated; median (least)")
    for what, costs in found.items():
        walls, cpus = [cost.wall_s for cost in costs], [cost.cpu_s for cost in costs]
        each = median(cpus) / options.hosts * 1000
        print(
            f"{what:20} wall {median(walls):6.2f} s ({min(walls):.2f})   controller CPU {median(cpus):6.2f} s "
            f"({min(cpus):.2f}), {each:.1f} ms a host"
        )


if __name__ == "__main__":
    main()
