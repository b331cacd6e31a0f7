"""A host with three GPUs, its workspace users, and helpers for tests of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab import images
from lab.config import Lab, Machine
from lab.hardware import T4, V100, Hardware
from lab.machine import exec_in
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on

HOST = "desk01"
CARDS = Hardware(cards=(T4, V100, T4))
UIDS = {"alice": 2001, "bob": 2002}
IMAGE = images.DESK.tag
ROLES = ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "workspaces"]
#: alice's Jupyter has an exclusive card; her box and bob's Jupyter share a second; the third is free.
DECLARED: dict[str, dict[str, Any]] = {
    "alice-lab": {
        "user": "alice", "kind": "jupyter", "gpus": [0], "cpus": 0.5, "memory": "400m", "shm": "48m", "pids": 200,
    },
    "alice-box": {
        "user": "alice", "kind": "ssh", "gpus": [1], "share": True, "memory": "300m",
        "environment": {"PATH": "/workspace/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    },
    "bob-lab": {"user": "bob", "kind": "jupyter", "gpus": [1], "share": True, "memory": "400m"},
}  # fmt: skip
#: Waits for Docker after a boot.
SETTLED = "n=0; until systemctl -q is-active docker; do n=$((n + 1)); [ $n -le 1200 ] || exit 1; sleep 0.1; done"


@dataclass
class Desk:
    """The host, its inventory, and the command line on it."""

    lab: Lab
    door: FrontDoor
    inventory: Path

    @property
    def machine(self) -> Machine:
        """The host."""
        return find_machine(self.lab, HOST)

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one verb on the inventory."""
        return self.door(*words, inventory=str(self.inventory))

    def done(self, *words: str) -> str:
        """Run one verb, which must succeed; return its output."""
        ended = self(*words)
        assert ended.returncode == 0, f"{words}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout

    def json(self, *words: str, status: int = 0) -> Any:
        """Run one verb with ``--json``; its exit status must be ``status``."""
        ended = self(*words, "--json")
        assert ended.returncode == status, f"status {ended.returncode}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return json.loads(ended.stdout)

    def declare(self, **variables: Any) -> None:
        """Write ``inventory/workspaces.yml``; on later calls, set these variables in it."""
        path = self.inventory / "workspaces.yml"
        if not path.exists():
            key = self.lab.private_key.with_suffix(".pub").read_text().strip()
            users = {
                "alice": {"uid": UIDS["alice"], "keys": [key]},
                "bob": None,
            }  # bob already has an account on the host
            entries = {name: {**entry, "image": IMAGE} for name, entry in DECLARED.items()}
            host = {HOST: {"workspaces_containers": entries}}
            path.write_text(yaml.safe_dump({"all": {"vars": {"workspaces_users": users}, "hosts": host}}))
        text = yaml.safe_load(path.read_text())
        text["all"]["vars"].update(variables)
        path.write_text(yaml.safe_dump(text))

    def entries(self) -> dict[str, Any]:
        """Return the host's workspaces in the file."""
        text = yaml.safe_load((self.inventory / "workspaces.yml").read_text())
        entries: dict[str, Any] = text["all"]["hosts"][HOST]["workspaces_containers"]
        return entries

    def provision(self, *words: str) -> str:
        """Provision the declared workspaces."""
        return self.done("provision", "--hosts", HOST, "--roles", "workspaces", *words)

    def planned(self) -> list[str]:
        """Return the names of planned changes; a plan without changes must end with 0."""
        ended = self("plan", "--hosts", HOST, "--roles", "workspaces", "--json")
        roles = json.loads(ended.stdout)["plans"][0]["roles"]
        names = [change["what"] for role in roles for change in role["changes"]]
        assert ended.returncode == (3 if names else 0), ended.stdout + ended.stderr
        return names

    def on(self, script: str) -> str:
        """Run a shell script as root on the host's console, which must succeed."""
        return on(self.machine, script)

    def inside(self, name: str, script: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script in a workspace as its user."""
        return exec_in(self.machine, ["docker", "exec", f"workspace-{name}", "sh", "-c", script])

    def well(self, name: str, script: str) -> str:
        """Run a shell script in a workspace as its user, which must succeed."""
        ended = self.inside(name, script)
        assert ended.returncode == 0, f"{name}: {script}\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"
        return ended.stdout

    def as_account(self, user: str, script: str) -> subprocess.CompletedProcess[str]:
        """Run a shell script on the host itself with a user's ids."""
        uid = str(UIDS[user])
        become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", "sh", "-c", script]
        return exec_in(self.machine, become)

    def inspect(self, name: str, what: str) -> str:
        """Return a value of ``docker inspect`` for a workspace's container."""
        return self.on(f"docker inspect --format '{{{{{what}}}}}' workspace-{name}").strip()

    def states(self) -> dict[str, str]:
        """Return the state of each workspace in ``workspace.list``."""
        rows = self.json("workspace.list", "--hosts", HOST)["workspaces"]
        return {row["name"]: row["state"] for row in rows}

    def token(self, name: str) -> str:
        """Return the token of a Jupyter, read as root."""
        return self.on(f"cat /var/lib/hostwright/workspaces/{name}/token").strip()

    def port(self, name: str) -> int:
        """Return the port of a workspace on the host's loopback."""
        return int(self.inspect(name, 'index .Config.Labels "hostwright.port"'))

    def address(self, name: str) -> str:
        """Return the address of a workspace's container in its network."""
        return self.inspect(name, "range .NetworkSettings.Networks}}{{.IPAddress}}{{end")

    def answer(self, name: str, token: str) -> str:
        """Return the HTTP status of a Jupyter on the host's loopback."""
        user = DECLARED[name]["user"]
        url = f"http://127.0.0.1:{self.port(name)}/{user}/{name}/api/contents"
        ask = "curl -q -s -o /dev/null -m 60 --noproxy '*' -w '%{http_code}'"
        return self.on(f"{ask} -H 'Authorization: token {token}' {url} || true").strip()

    def await_(self, condition: str, why: str, seconds: int = 180) -> None:
        """Wait on the host until a shell condition holds."""
        loop = f"n=0; until {{ {condition}; }}; do n=$((n + 1)); [ $n -le {seconds * 10} ] || exit 1; sleep 0.1; done"
        ended = exec_in(self.machine, ["sh", "-c", loop])
        assert ended.returncode == 0, f"after {seconds} s: {why}\n{ended.stderr[-1000:]}"

    def answers(self, *names: str) -> None:
        """Wait until these Jupyters accept their tokens."""
        for name in names:
            path = f"127.0.0.1:{self.port(name)}/{DECLARED[name]['user']}/{name}/api"
            asked = f"curl -q -s -f -o /dev/null -m 5 --noproxy '*' http://{path}"
            self.await_(asked, f"{name} does not answer", 300)

    def ssh(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run this machine's ssh to alice's box through its host, without this machine's SSH configuration."""
        address = f"ops@{self.machine.address}"
        known = f"-oUserKnownHostsFile={self.inventory / 'known_hosts'}"
        common = ["-F", "none", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oConnectTimeout=20"]
        jump = ["ssh", *common, "-i", str(self.lab.private_key), f"-oUserKnownHostsFile={self.lab.known_hosts}"]
        proxy = " ".join([*jump, "-W", "127.0.0.1:%p", address])
        target = ["-oHostKeyAlias=box", known, "-p", str(self.port("alice-box")), f"-oProxyCommand={proxy}"]
        return subprocess.run(
            ["ssh", *common, *target, *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip


def by_uuid(lines: str) -> Sequence[str]:
    """Return the UUIDs in the output of ``nvidia-smi -L``."""
    return [part.partition(")")[0] for part in lines.split("UUID: ")[1:]]
