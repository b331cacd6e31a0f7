"""A lab host on which workspaces are made to fail: what it has of them, and the command line that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lab import fleet, images
from lab.config import Lab
from lab.machine import exec_in
from lab.records import read_records
from tests.lab.conftest import SMALL, FrontDoor
from tests.workspaces.onehost import OneHost

HOST = "ws01"
PEOPLE = """\
all:
  vars:
    workspaces_users:
      alice: {uid: 2001}
      bob: {uid: 2002}
"""
#: what stands in for Jupyter in the small image: answers everything with 200, after as many seconds as `slow` says
SERVER = """\
#!/usr/bin/python3
import http.server, os, sys, time
if os.path.exists("/workspace/die"):
    sys.exit("\\x1b[31mPermissionError\\x1b[0m: no rights for /workspace/.jupyter")
time.sleep(float(os.environ.get("SLOW", "0")))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a stand-in for Jupyter")
http.server.ThreadingHTTPServer(("", 8888), Handler).serve_forever()
"""
#: images made on the host, without a registry: one that works, one that needs long to answer, one whose program ends
IMAGES = """
mkdir -p /root/images && cd /root/images
cat >jupyter
chmod 755 jupyter
cat >ends <<'end'
#!/bin/sh
printf '\\033[31mPermissionError\\033[0m: no rights for /workspace/.jupyter\\n' >&2
exit 3
end
chmod 755 ends
label='LABEL org.hostwright.lab.stand-in="answers in the place of Jupyter"'
printf 'FROM %s\\n%s\\nCOPY jupyter /usr/local/bin/jupyter\\n' "$1" "$label" | docker build -qt lab/jupyter:1 -f - .
printf 'FROM lab/jupyter:1\\nENV SLOW=25\\n' | docker build -qt lab/slow:1 -f - .
printf 'FROM lab/jupyter:1\\nCOPY ends /usr/local/bin/jupyter\\n' | docker build -qt lab/ends:1 -f - .
"""
#: all that a host has of workspaces: containers with state and identity, networks, root's files, people's directories
HAS = """
docker ps -aq --filter label=hostwright.workspace | xargs -r docker inspect \
  --format '{{.Name}} {{.Id}} {{.State.Status}}' | sort
docker network ls --filter label=hostwright.workspaces --format 'network {{.Name}}' | sort
find /var/lib/hostwright/workspaces -mindepth 1 2>/dev/null | sort
find /srv/workspaces -mindepth 1 -maxdepth 2 2>/dev/null | sort
"""
WIPE = """
docker ps -aq --filter label=hostwright.workspace | xargs -r docker rm -f
docker network ls -q --filter label=hostwright.workspaces | xargs -r docker network rm
rm -rf /var/lib/hostwright/workspaces/* /srv/workspaces/*
"""


@dataclass(frozen=True)
class Bench(OneHost):
    """The host, and ``invoke`` on its inventory."""

    HOST = HOST

    def has(self) -> list[str]:
        """What the host has of workspaces."""
        return self.on(HAS).splitlines()

    def containers(self) -> dict[str, str]:
        """The containers of workspaces: name and state."""
        rows = (line.split() for line in self.has() if line.startswith("/workspace-"))
        return {name.removeprefix("/workspace-"): state for name, _, state in rows}

    def up(self, user: str = "alice", image: str = "lab/jupyter:1", *words: str) -> tuple[int, str]:
        """``workspace.up``; its exit status and all that a person reads."""
        return self.say("workspace.up", "--host", HOST, "--user", user, "--image", image, *words)

    def provision(self) -> tuple[int, str]:
        """``provision --roles workspaces``, likewise."""
        return self.say("provision", "--hosts", HOST, "--roles", "workspaces")

    def declare(self, **spaces: str) -> None:
        """Write workspaces (``bob_lab="user: bob, …"``) as people do, all of kind jupyter."""
        lines = [f"        {name.replace('_', '-')}: {{kind: jupyter, {text}}}\n" for name, text in spaces.items()]
        head = f"  hosts:\n    {HOST}:\n      workspaces_containers:\n"
        self.file.write_text(PEOPLE + head + "".join(lines))

    def wiped(self) -> None:
        """Nobody has a workspace, declared or on the host."""
        self.file.write_text(PEOPLE)
        self.on(WIPE)

    @contextmanager
    def broken(self, script: str, mend: str) -> Iterator[None]:
        """Break the host for the body."""
        self.on(script)
        try:
            yield
        finally:
            exec_in(self.machine, ["sh", "-c", mend])


def opened(lab: Lab) -> Bench:
    """A host with Docker and the role, and three images, in a lab."""
    invoke = FrontDoor(lab)
    if HOST not in read_records(lab):
        fleet.supply(lab, SMALL)
        fleet.up(lab, [HOST], options=SMALL)
        variables = lab.inventory.parent / "host_vars" / f"{HOST}.yml"
        variables.parent.mkdir(exist_ok=True)
        variables.write_text("hostwright_roles: [base, driver, container, workspaces]\n")
        for words in (("mirror", "--stack", "lab"), ("provision", "--hosts", HOST)):
            done = invoke(*words)
            assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    bench = Bench(lab, invoke)
    images.load(bench.machine, images.PYTHON)
    made = exec_in(bench.machine, ["sh", "-euc", IMAGES, "images", images.PYTHON.tag], stdin=SERVER)
    assert made.returncode == 0, made.stderr
    return bench
