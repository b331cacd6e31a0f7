"""A host on which two people are at work: alice in her Jupyter and in a batch run, bob in his SSH box.

What would end their work, and what is there again afterwards, is asked of the host itself.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from lab import fleet, images, snapshots
from lab.config import USER, HostOptions, Lab
from lab.hardware import T4, V100, Hardware
from lab.machine import exec_in, start, wait_for_ssh
from lab.records import read_snapshots
from tests.lab.audit.bench import SETTLE
from tests.lab.conftest import FrontDoor
from tests.workspaces.onehost import OneHost
from tests.workspaces.tunnels import eventually

HOST = "busy01"
ROLES = ["base", "driver", "container", "workspaces", "proxy"]
OPTIONS = HostOptions(profile="small", hardware=Hardware(cards=(T4, V100)))
SNAPSHOT = "settled"
PORT = 8443  #: of the proxy
UIDS = {"alice": 2001, "bob": 2002, "carol": 2003}
IMAGE = images.DESK.tag
LAB, BOX, RUN = "alice-lab", "bob-box", "alice-run"
#: the Jupyter has a card of its own; the batch run, which comes when somebody is to be at work, gets the other
SPACES: dict[str, dict[str, Any]] = {
    LAB: {"user": "alice", "kind": "jupyter", "gpus": [0], "image": IMAGE},
    BOX: {"user": "bob", "kind": "ssh", "image": IMAGE},
}
SCRIPT = "echo begun >>/workspace/times; exec sleep 36000"
BATCH = {"user": "alice", "kind": "batch", "gpus": [1], "image": IMAGE, "command": ["sh", "-c", SCRIPT]}
#: how people are named whose work would end, and those of them whose work is on a card
ON_CARDS = ("workspace alice-lab of alice (", "workspace alice-run of alice (a batch run)")
WHOSE = (*ON_CARDS, "workspace bob-box of bob (")
#: what of a container says that it was not touched, and its processes
LIVES = """
for name in $(docker ps --filter label=hostwright.workspace --format '{{.Names}}' | sort); do
  docker inspect --format '{{.Name}} {{.Id}} {{.State.StartedAt}}' "$name"
  docker top "$name" -eo pid | sed 1d | sort -n | sed "s|^|$name |"
done
cat /proc/sys/kernel/random/boot_id"""


@dataclass(frozen=True)
class Busy(OneHost):
    """The host, its inventory, and the command line on it."""

    HOST = HOST

    def declare(self, *hosts: str, people: dict[str, Any] | None = None, **spaces: dict[str, Any] | None) -> None:
        """Write what is declared: the usual, with these people and workspaces changed (``None``: not declared)."""
        key = self.lab.private_key.with_suffix(".pub").read_text().strip()
        users = {name: {"uid": uid, "keys": [key]} for name, uid in UIDS.items()} | (people or {})
        named = {name.replace("_", "-"): space for name, space in spaces.items()}
        declared = {name: space for name, space in {**SPACES, **named}.items() if space}
        each = {host: {"workspaces_containers": declared} for host in (HOST, *hosts)}
        common = {"hostwright_roles": ROLES, "workspaces_users": users, "proxy_listen": [str(PORT)]}
        common["hostwright_reboot_timeout"] = 300  # a lab host that is not back then never will be
        self.file.write_text(yaml.safe_dump({"all": {"vars": common, "hosts": each}}, sort_keys=False))

    def said(self, *words: str, status: int) -> str:
        """Run one verb on the host, which must end with this status; all that a person reads, on one line."""
        done = self.invoke(*words, COLUMNS="1000")
        assert done.returncode == status, f"{words}: {done.returncode}\n{done.stdout[-5000:]}\n{done.stderr[-5000:]}"
        return " ".join(f"{done.stdout} {done.stderr}".split())

    def plan(self, *words: str, status: int = 3) -> Any:
        """The host's plan, which changes nothing."""
        (plan,) = self.invoke.json("plan", "--hosts", HOST, *words, status=status)["plans"]
        return plan

    def lives(self) -> set[str]:
        """Each container with its start, each of its processes, and the host's boot."""
        return set(self.on(LIVES).splitlines())

    def refused(self, *words: str, whose: tuple[str, ...] = WHOSE) -> str:
        """Run one verb that must be refused, name these people, and end nothing; what it said."""
        before = self.lives()
        said = self.said(*words, status=1)
        assert [name for name in whose if name not in said] == [], said
        assert before - self.lives() == set()
        return said

    def forced(self, *words: str, whose: tuple[str, ...] = WHOSE, then: str) -> str:
        """Run one verb with ``--force``: these people are named before the words of what ends their work are said."""
        said = self.said(*words, "--force", status=0)
        told, _, rest = said.partition(then)
        assert rest, said
        assert [name for name in whose if name not in told] == [], said
        return said

    def kept(self) -> dict[str, str]:
        """What must outlive every upheaval: token, host key, files."""
        state = "/var/lib/hostwright/workspaces"
        files = [f"{state}/{LAB}/token", f"{state}/{BOX}/host_key.pub"]
        files += [f"/srv/workspaces/alice/{LAB}/notes", f"/srv/workspaces/bob/{BOX}/notes"]
        return {file: self.on(f"cat {file}") for file in files}

    def token(self, name: str = LAB) -> str:
        """The token of a Jupyter."""
        return self.on(f"cat /var/lib/hostwright/workspaces/{name}/token").strip()

    def port(self, name: str) -> int:
        """The port of a workspace on the host's loopback."""
        label = '{{index .Config.Labels "hostwright.port"}}'
        return int(self.on(f"docker inspect --format '{label}' workspace-{name}"))

    def api(self, name: str, path: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Ask a Jupyter on the host's loopback, with its token."""
        user = name.partition("-")[0]
        ask = ["curl", "-q", "-s", "-S", "--fail", "-m", "20", "--noproxy", "*", *options]
        header = f"Authorization: token {self.token(name)}"
        return exec_in(self.machine, [*ask, "-H", header, f"http://127.0.0.1:{self.port(name)}/{user}/{name}/{path}"])

    def answers(self) -> None:
        """Wait until the Jupyter answers with its token and the box with its banner."""
        eventually(lambda: self.api(LAB, "api/contents").returncode == 0, 240, f"{LAB} to answer")
        banner = f"timeout 5 bash -c 'read -r line </dev/tcp/127.0.0.1/{self.port(BOX)}; [[ $line == SSH-2.0* ]]'"
        eventually(lambda: exec_in(self.machine, ["sh", "-c", banner]).returncode == 0, 120, f"{BOX} to answer")

    def awake(self) -> None:
        """Wait until the host answers, has settled and Docker runs."""
        wait_for_ssh(self.machine)
        self.on(SETTLE)

    @contextmanager
    def at_work(self, *, batch: bool = True) -> Iterator[None]:
        """alice has a terminal open in her Jupyter and a batch run in its middle, bob a session in his box."""
        self.answers()
        if batch:
            self.declare(alice_run=BATCH)
            self.said("provision", "--hosts", HOST, "--roles", "workspaces", status=0)
            times = f"/srv/workspaces/alice/{RUN}/times"
            eventually(lambda: exec_in(self.machine, ["test", "-s", times]).returncode == 0, 120, "the run's begin")
        assert json.loads(self.api(LAB, "api/terminals", "-X", "POST").stdout)["name"]
        with self.session():
            eventually(lambda: self._at_work(batch=batch), 60, "everybody to be at work")
            yield

    def _at_work(self, *, batch: bool) -> bool:
        """Whether the host itself sees who is at work, each in a program of their own."""
        inside = self.on(f"docker top workspace-{LAB} -eo pid,comm; docker top workspace-{BOX} -eo pid,args")
        ran = ["docker", "top", f"workspace-{RUN}", "-eo", "pid,args"]
        begun = not batch or "sleep 36000" in exec_in(self.machine, ran).stdout
        return begun and "bash" in inside and "sleep 35999" in inside

    @contextmanager
    def session(self) -> Iterator[subprocess.Popen[bytes]]:
        """bob is logged in to his box, with a program that runs."""
        plain = ["-F", "none", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-i", str(self.lab.private_key)]
        jump = ["ssh", *plain, f"-oUserKnownHostsFile={self.lab.known_hosts}", "-W", "127.0.0.1:%p"]
        proxy = " ".join([*jump, f"{USER}@{self.machine.address}"])
        own = ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null", f"-oProxyCommand={proxy}"]
        words = ["ssh", *plain, *own, "-p", str(self.port(BOX)), "bob@127.0.0.1", "exec sleep 35999"]
        with subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                yield process
            finally:
                process.terminate()


def settled(lab: Lab) -> Busy:
    """The host with everything declared and answering, and a snapshot of it."""
    busy = Busy(lab, FrontDoor(lab))
    if SNAPSHOT not in read_snapshots(lab):
        fleet.supply(lab, OPTIONS)
        fleet.up(lab, [HOST], options=OPTIONS, bmc=True)
        busy.said("mirror", "--stack", "lab", status=0)
        busy.declare(alice_lab=None, bob_box=None)
        busy.said("provision", "--hosts", HOST, "--roles", "base,driver,container", status=0)
        images.load(busy.machine, images.DESK)
        busy.declare()
        busy.said("provision", "--hosts", HOST, status=0)
        for user, name in (("alice", LAB), ("bob", BOX)):
            busy.on(f"echo kept by {user} >/srv/workspaces/{user}/{name}/notes")
        snapshots.freeze(busy.machine, SNAPSHOT)
        start(busy.machine)
        busy.awake()
    return busy


def as_settled(busy: Busy) -> None:
    """The host as it was when it had settled, whatever was done to it since."""
    busy.declare()
    fleet.thaw(busy.lab, [HOST], read_snapshots(busy.lab)[SNAPSHOT])
    busy.awake()
    busy.answers()
