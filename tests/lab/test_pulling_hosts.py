"""Files from this machine and from host to host: real hosts with systemd, networks, firewalls and failures.

The tests count copies sent by this machine and leftovers on hosts. Hosts are bare; the run delivers one file.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hostwright.apply.delivery.sources.sources import COPIES
from hostwright.apply.events import FROM_HERE, OVER_SSH, PEER
from hostwright.stack.store.artifacts import STORE_VARIABLE, Store
from hostwright.stack.store.hostcache import CACHE
from lab import fleet as lab_fleet
from lab.config import HostOptions, Lab, Machine
from lab.machine import exec_in
from lab.programs import run
from lab.records import find_machine
from tests.lab.conftest import on
from tests.lab.ownlab import own_lab
from tests.lab.runs_files import PLACE
from tests.places import PROJECT

HOSTS = tuple(f"pull{number:02}" for number in range(1, 7))
SIZE = 40_000_000
PATIENCE_S = 120.0
UNITS = "systemctl list-units --all --no-legend --plain 'hostwright-files-*' | wc -l"
#: Counts leftovers of a run, except for logins that are still ending.
LEFT = "ls /run/systemd/transient 2>/dev/null | grep -v '^session-' || true; pgrep -x perl || true"
SENT = re.compile(r"Delivering\(host='(\w+)'.*sent=\{([^}]*)\}")


@dataclass
class Blob:
    """The file, with its store on this machine."""

    path: Path
    sha256: str
    store: Path


@dataclass
class Run:
    """A run in a separate process, with its output so far."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text()

    def ends(self) -> int:
        self.process.wait(PATIENCE_S)
        return self.process.returncode

    @property
    def sources(self) -> Counter[str]:
        """How many hosts had the file from where; from other hosts together."""
        every: Counter[str] = Counter()
        for line in self.text.splitlines():
            if match := SENT.match(line):
                every.update("peer" if name.startswith(PEER) else name for name in re.findall(r"'([^']+)':", match[2]))
        return every


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with own_lab("pull") as opened:
        lab_fleet.up(opened, HOSTS, options=HostOptions(profile="small"))
        yield opened


@pytest.fixture(scope="module")
def blob(tmp_path_factory: pytest.TempPathFactory) -> Blob:
    folder = tmp_path_factory.mktemp("blob")
    content = os.urandom(SIZE)
    sha256 = hashlib.sha256(content).hexdigest()
    path = Store(folder).path(sha256, "blob.bin")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return Blob(path, sha256, folder)


@pytest.fixture
def machines(lab: Lab) -> Iterator[list[Machine]]:
    """The hosts without the file; checks afterwards that the run left nothing."""
    several = [find_machine(lab, name) for name in HOSTS]
    for machine in several:
        on(machine, f"rm -rf {CACHE} {PLACE} /var/lib/hostwright/origin")
    yield several
    for machine in several:
        until(lambda machine=machine: on(machine, UNITS).strip() == "0")
        assert on(machine, LEFT).strip() == ""


def until(condition: Callable[[], object]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "it did not come about"
        time.sleep(0.1)


@contextmanager
def running(lab: Lab, blob: Blob, tmp_path: Path, **variables: object) -> Iterator[Run]:
    """A run over all hosts, with common variables."""
    inventory, log = tmp_path / "inventory", tmp_path / "log"
    data = yaml.safe_load(lab.inventory.read_text())
    data["lab"]["vars"].update(stack="tensorflow-2.9", **variables)
    inventory.mkdir(exist_ok=True)
    (inventory / "lab.yml").write_text(yaml.safe_dump(data))
    words = [sys.executable, "-m", "tests.lab.runs_files", str(inventory / "lab.yml"), str(blob.path), blob.sha256]
    environment = {**os.environ, STORE_VARIABLE: str(blob.store), "HOSTWRIGHT_STATE": str(tmp_path / "state")}
    with log.open("w") as out:
        process = subprocess.Popen(words, cwd=PROJECT, env=environment, stdout=out, stderr=out, text=True)
    try:
        yield Run(process, log)
    finally:
        process.kill()
        process.wait()


def check(machines: list[Machine], blob: Blob) -> None:
    for machine in machines:
        assert on(machine, f"sha256sum <{PLACE}").split()[0] == blob.sha256
        assert on(machine, f"ls {CACHE}/{blob.sha256}").split() == ["blob.bin"]


def serving(machines: list[Machine]) -> list[Machine]:
    """Return the hosts with a running file server."""
    return [machine for machine in machines if on(machine, UNITS).strip() != "0"]


def test_a_file_reaches_all_hosts_in_few_copies_of_ours(
    lab: Lab, blob: Blob, machines: list[Machine], tmp_path: Path
) -> None:
    with running(lab, blob, tmp_path) as one:
        assert one.ends() == 0, one.text
    check(machines, blob)
    assert one.sources[FROM_HERE] <= COPIES
    assert one.sources["peer"] == len(HOSTS) - one.sources[FROM_HERE]
    journal = next((tmp_path / "state").glob("runs/*/journal.jsonl")).read_text()
    assert journal.count('"kind": "delivering"') == len(HOSTS)
    assert journal.count(f'"{FROM_HERE}": {SIZE}') == one.sources[FROM_HERE]


def test_a_server_on_a_host_may_do_nothing_else(lab: Lab, blob: Blob, machines: list[Machine], tmp_path: Path) -> None:
    with running(lab, blob, tmp_path, hostwright_peer_rate=2) as one:
        until(lambda: serving(machines))
        machine = serving(machines)[0]
        unit = on(machine, "systemctl list-units --no-legend --plain 'hostwright-files-*'").split()[0]
        shown = on(machine, f"systemctl show -p DynamicUser,ProtectSystem,NoNewPrivileges,CapabilityBoundingSet {unit}")
        assert "DynamicUser=yes" in shown
        assert "ProtectSystem=strict" in shown
        pid = f"$(systemctl show -p MainPID {unit} | cut -d= -f2)"
        allowed = re.compile(r"Uid:\t6[0-9]{4}\t.*\nCapEff:\t0{16}\n")  # before that, systemd is still starting it
        until(lambda: allowed.search(on(machine, f"grep -E '^(Uid|CapEff)' /proc/{pid}/status || true")))
        one.process.kill()  # like kill -9: its programs on hosts end with its connections
        until(lambda: not serving(machines))


@pytest.mark.long
def test_a_peer_that_dies_in_the_middle_is_missed_by_nobody(
    lab: Lab, blob: Blob, machines: list[Machine], tmp_path: Path
) -> None:
    with running(lab, blob, tmp_path, hostwright_peer_rate=5) as one:
        until(lambda: serving(machines) and PEER in one.text)
        for machine in serving(machines):
            exec_in(machine, ["systemctl", "kill", "--signal=KILL", "hostwright-files-*"])
        assert one.ends() == 0, one.text
    check(machines, blob)
    assert "could not be fetched from" in one.text


def test_hosts_that_cannot_reach_us_get_a_few_copies_over_ssh_and_the_rest_from_each_other(
    lab: Lab, blob: Blob, machines: list[Machine], tmp_path: Path
) -> None:
    """A firewall on this machine drops all connections that hosts open."""
    table = f"{lab.table}_closed"
    rule = f'iifname "{lab.bridge}" tcp flags & (syn | ack) == syn drop'
    text = f"table ip {table} {{\n chain inward {{\n type filter hook input priority 0;\n {rule}\n }}\n}}\n"
    run(["nft", "-f", "-"], stdin=text)
    try:
        with running(lab, blob, tmp_path) as one:
            assert one.ends() == 0, one.text
    finally:
        run(["nft", "delete", "table", "ip", table])
    check(machines, blob)
    assert one.sources[FROM_HERE] == 0
    assert one.sources[OVER_SSH] <= COPIES
    assert one.sources["peer"] == len(HOSTS) - one.sources[OVER_SSH]
    assert "no answer within 3 s" in one.text


@pytest.mark.long
def test_a_run_that_is_stopped_ends_soon_and_is_continued(
    lab: Lab, blob: Blob, machines: list[Machine], tmp_path: Path
) -> None:
    with running(lab, blob, tmp_path, hostwright_peer_rate=1) as one:
        until(lambda: serving(machines) and PEER in one.text)
        one.process.terminate()  # like one Ctrl-C
        assert one.ends() == 1, one.text
    assert "stopped before all of its files had arrived" in one.text
    begun = [machine for machine in machines if on(machine, f"ls {CACHE}/{blob.sha256}/blob.bin.part || true")]
    assert begun
    with running(lab, blob, tmp_path) as again:
        assert again.ends() == 0, again.text
    check(machines, blob)
    continued = sum(int(size) for size in re.findall(r"': (\d+)", " ".join(re.findall(r"sent=\{.*\}", again.text))))
    assert continued < len(HOSTS) * SIZE
