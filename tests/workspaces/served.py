"""A lab host with two cards that serves models, and the ways in which tests ask about them."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab import faults, images
from lab.config import Lab, Machine
from lab.machine import exec_in, inside, wait_for_ssh
from tests.workspaces.onehost import OneHost

HOST = "model01"
ROLES = ["base", "driver", "container", "workspaces", "serving"]
HERE = Path(__file__).parent
CLIENTS = 4
#: all that a host has of models
HAS = """
docker ps -a --format 'container {{.Names}}'
docker network ls --filter label=hostwright.workspaces --format 'network {{.Name}}'
find /var/lib/hostwright/workspaces -mindepth 1
find /srv/workspaces -type f
"""


@dataclass(frozen=True)
class Served(OneHost):
    """The host, its inventory, the models' directories on this machine, and what TensorFlow computes of them."""

    HOST = HOST

    models: Path
    expected: dict[str, Any]

    def done(self, *words: str) -> str:
        """Run one verb, which must end well; what it printed."""
        status, text = self.say(*words)
        assert status == 0, f"{words}: {status}\n{text[-4000:]}"
        return text

    def up(self, model: str, *words: str) -> tuple[int, str]:
        """``serve.up`` of one of the models, as ``half`` unless another name is given."""
        name = () if "--name" in words else ("--name", "half")
        return self.say("serve.up", "--host", HOST, "--model", str(self.models / model), *name, *words)

    def switch(self, version: int) -> tuple[int, str]:
        """``serve.switch`` of ``half``."""
        return self.say("serve.switch", "--name", "half", "--version", str(version))

    def provision(self) -> tuple[int, str]:
        """``provision`` of the two roles."""
        return self.say("provision", "--hosts", HOST, "--roles", "workspaces,serving")

    def planned(self) -> list[str]:
        """What a plan of the two roles would change, by its names."""
        done = self.invoke("plan", "--hosts", HOST, "--roles", "workspaces,serving", "--json")
        return [change["what"] for role in json.loads(done.stdout)["plans"][0]["roles"] for change in role["changes"]]

    def entries(self) -> dict[str, Any]:
        """What the inventory declares of the host."""
        document = yaml.safe_load(self.file.read_text())
        entries: dict[str, Any] = document["all"]["hosts"][HOST].get("workspaces_containers") or {}
        return entries

    def rows(self) -> dict[str, Any]:
        """``serve.list``, by the models' names."""
        done = self.invoke("serve.list", "--hosts", HOST, "--json")
        assert done.returncode == 0, done.stderr
        return {row["model"]: row for row in json.loads(done.stdout)["models"]}

    def port(self, name: str = "half") -> int:
        """Where a model answers on the host's loopback."""
        label = '{{index .Config.Labels "hostwright.port"}}'
        return int(self.on(f"docker inspect --format '{label}' workspace-{name}"))

    def ask(self, path: str, document: Any = None, *, name: str = "half") -> tuple[int, Any]:
        """The HTTP status and the answer to one request, made on the host."""
        body = None if document is None else json.dumps(document)
        ((status, text),) = self.asked(
            [{"method": "GET" if body is None else "POST", "path": path, "body": body}], name
        )
        return status, json.loads(text)

    def asked(self, requests: list[dict[str, Any]], name: str = "half") -> list[tuple[int, str]]:
        """The HTTP statuses and the answers to requests, made on the host one after the other."""
        done = exec_in(self.machine, ["python3", "-c", ASKS, str(self.port(name))], stdin=json.dumps(requests))
        assert done.returncode == 0, done.stderr
        return [(status, text) for status, text in json.loads(done.stdout)]

    def live(self) -> str:
        """The version to which the label of ``half`` leads."""
        _, about = self.ask("/v1/models/half/labels/live/metadata")
        return str(about.get("model_spec", {}).get("version", about))

    def await_(self, condition: str, why: str, seconds: int = 300) -> None:
        """Wait on the host until a shell condition holds."""
        loop = f"n=0; until {{ {condition}; }}; do n=$((n + 1)); [ $n -le {seconds * 10} ] || exit 1; sleep 0.1; done"
        ended = exec_in(self.machine, ["sh", "-c", loop])
        assert ended.returncode == 0, f"after {seconds} s: {why}\n{ended.stderr[-1000:]}"

    def answers(self, version: int = 1) -> None:
        """Wait until ``half`` answers again, by this version at least."""
        address = f"http://127.0.0.1:{self.port()}/v1/models/half/versions/{version}"
        asked = f"curl -q -s -f -m 5 --noproxy '*' {address} | grep -q AVAILABLE"
        self.await_(asked, f"version {version} of half does not answer")

    @contextmanager
    def under_load(self, name: str = "half") -> Iterator[Counter[str]]:
        """Clients ask the live version during the body; afterwards the counter has what they got."""
        counted: Counter[str] = Counter()
        self.on("rm -f /run/asking.end")
        words = ["python3", "-", str(self.port(name)), f"/v1/models/{name}/labels/live:predict", str(CLIENTS)]
        clients = subprocess.Popen(
            inside(self.machine, [*words, "/run/asking.end"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert clients.stdin is not None
        clients.stdin.write((HERE / "asking_models.py").read_text())
        clients.stdin.close()
        clients.stdin = None
        try:
            yield counted
        finally:
            self.on("touch /run/asking.end")
            output, _ = clients.communicate(timeout=120)
        closed, kept = (Counter(part) for part in json.loads(output))
        print(f"answers over connections of one request: {dict(closed)}, over kept ones: {dict(kept)}")
        assert closed
        assert kept
        counted.update(closed + kept)

    def reboot(self) -> None:
        """Restart the host as its administrator does, and wait until it can be reached."""
        faults.reboot(self.machine)
        wait_for_ssh(self.machine)

    def has(self) -> list[str]:
        """What the host has of models."""
        return sorted(self.on(HAS).splitlines())


#: The requests of its standard input, as JSON, to a port of the host's loopback; printed is JSON as well.
ASKS = """
import gzip, http.client, json, sys
answers = []
for request in json.load(sys.stdin):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=120)
    body = request["body"].encode() if request["body"] is not None else None
    headers = {}
    if request.get("gzip"):
        body, headers = gzip.compress(body), {"Content-Encoding": "gzip"}
    connection.request(request["method"], request["path"], body, headers)
    reply = connection.getresponse()
    answers.append((reply.status, reply.read().decode()))
    connection.close()
print(json.dumps(answers))
"""


def made(lab: Lab, machine: Machine) -> tuple[Path, dict[str, Any]]:
    """Models made by TensorFlow on the host, brought to this machine as a data scientist has them."""
    run = "docker run --rm -i --network none -v /root/models:/out --entrypoint python3 " + images.SERVING.tag + " -"
    ended = exec_in(machine, ["sh", "-c", f"mkdir -p /root/models; {run}"], stdin=(HERE / "made_models.py").read_text())
    assert ended.returncode == 0, ended.stderr[-3000:]
    place = lab.state / "models"
    place.mkdir(exist_ok=True)
    with subprocess.Popen(inside(machine, ["tar", "-C", "/root/models", "-c", "."]), stdout=subprocess.PIPE) as tar:
        assert tar.stdout is not None
        with tarfile.open(fileobj=tar.stdout, mode="r|") as archive:
            archive.extractall(place, filter="data")
    return place, json.loads((place / "expected.json").read_text())
