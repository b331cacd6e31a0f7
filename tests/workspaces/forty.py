"""Ten hosts, clones of one with Docker, and the forty workspaces of three people that one file declares for them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hostwright.standard.roles.workspaces.declared.images import TENSORFLOW
from lab import fleet, images, snapshots
from lab.config import HostOptions, Lab
from lab.hardware import T4, V100, Hardware
from lab.machine import exec_in
from lab.records import find_machine, read_snapshots
from tests.lab.conftest import FrontDoor, on
from tests.lab.workspaces.desk import SETTLED
from tests.places import PROJECT
from tests.workspaces.failing.bench import WIPE

HOSTS = tuple(f"gpu{number:02}" for number in range(1, 11))
OPTIONS = HostOptions(profile="small", hardware=Hardware(cards=(T4, V100, T4)))
READY = "ready"  #: the snapshot of a host with Docker and the image
ROLES = ("base", "driver", "container", "workspaces")
LISTS_ITS_GPUS = {"kind": "batch", "command": ["nvidia-smi", "-L"]}
#: What stands in for Jupyter and TensorBoard, of which thirty are more than two cores start: answers all with 200.
SERVER = """\
#!/usr/bin/python3
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a stand-in for Jupyter and TensorBoard")
port = 6006 if sys.argv[0].endswith("tensorboard") else 8888
http.server.ThreadingHTTPServer(("", port), Handler).serve_forever()
"""
#: Its image, made on the host with the name of the role's own.
BUILD = """mkdir -p /root/image && cd /root/image && cat >server && chmod 755 server
label='LABEL org.hostwright.lab.stand-in="answers in the place of Jupyter and TensorBoard"'
copies='COPY server /usr/local/bin/jupyter\nCOPY server /usr/local/bin/tensorboard'
printf 'FROM %s\n%s\n%b\n' "$1" "$label" "$copies" | docker build -qt "$2" -f - ."""
#: of nine hosts, and of the tenth
USUAL: dict[str, dict[str, Any]] = {
    "alice-board": {"user": "alice", "kind": "tensorboard"},
    "alice-lab": {"user": "alice", "kind": "jupyter", "gpus": [0]},
    "bob-lab": {"user": "bob", "kind": "jupyter", "gpus": [1]},
    "carol-run": {"user": "carol", **LISTS_ITS_GPUS, "gpus": [2]},
}
OTHER: dict[str, dict[str, Any]] = {
    "alice-run": {"user": "alice", **LISTS_ITS_GPUS, "gpus": [0]},
    "bob-board": {"user": "bob", "kind": "tensorboard"},
    "bob-lab": {"user": "bob", "kind": "jupyter", "gpus": [1]},
    "carol-lab": {"user": "carol", "kind": "jupyter", "gpus": [2]},
}
DECLARED = {host: USUAL if host != HOSTS[-1] else OTHER for host in HOSTS}
#: How many logins and how many commands a host's sshd has taken since the host booted.
COUNT = """journalctl --sync
journalctl --boot --no-pager --output cat --identifier sshd |
  awk '/^Accepted publickey /{ logins++ } /^Starting session: /{ sessions++ } END { print logins + 0, sessions + 0 }'"""
#: A line for each container of a workspace: name, ID, when it was started, port, UUIDs of its GPUs.
CONTAINERS = """docker ps -aq --no-trunc --filter label=hostwright.workspace | xargs -r docker inspect --format \
'{{index .Config.Labels "hostwright.workspace"}} {{.Id}} {{.State.StartedAt}} \
{{index .Config.Labels "hostwright.port"}} {{index .Config.Labels "hostwright.gpus"}}'"""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Container:
    """A workspace's container, as Docker on the host has it."""

    id: str
    started: str
    port: int  #: 0: none
    gpus: tuple[str, ...]


@dataclass
class Ten:
    """The hosts, and the command line that works on them; how long its verbs took is kept."""

    lab: Lab
    invoke: FrontDoor
    seconds: dict[str, float] = field(default_factory=dict)

    def declare(self, hosts: Mapping[str, Mapping[str, Any]], **left: bool) -> None:
        """Write what hosts have to the one file; who has ``left`` stays in it with that word."""
        people = {
            person: {"uid": uid, "left": left.get(person, False)}
            for person, uid in (("alice", 2001), ("bob", 2002), ("carol", 2003))
        }
        spaces = {host: {"workspaces_containers": dict(each)} for host, each in hosts.items()}
        document = {"all": {"vars": {"workspaces_users": people, "hostwright_roles": [*ROLES]}, "hosts": spaces}}
        (self.lab.inventory.parent / "workspaces.yml").write_text(yaml.safe_dump(document, sort_keys=False))

    def done(self, *words: str, status: int = 0) -> str:
        """Run one verb, which must end with this status; what it printed."""
        began = time.monotonic()
        ended = self.invoke(*words)
        self.seconds.setdefault(words[0], time.monotonic() - began)
        assert ended.returncode == status, f"{words}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout

    def json(self, *words: str, status: int = 0) -> Any:
        """Run one verb with ``--json``."""
        return json.loads(self.done(*words, "--json", status=status))

    def in_terminal(self, columns: int, *words: str) -> list[str]:
        """Run one verb in a terminal so wide; the lines that it wrote there, without colours."""
        verb, *rest = words
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        state = {"HOSTWRIGHT_STATE": str(self.lab.state / "controller"), "TERM": "xterm-256color"}
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        program = Path(sys.executable).with_name("invoke")
        with subprocess.Popen(
            [program, verb, "--inventory", str(self.lab.inventory.parent), *rest],
            cwd=PROJECT, env={**environment, **state}, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        ):  # fmt: skip
            os.close(theirs)
            text = b""
            while part := _read(ours):
                text += part
        os.close(ours)
        return _STYLE.sub("", text.decode()).replace("\r\n", "\n").splitlines()

    def on_all(self, script: str) -> dict[str, str]:
        """Run shell on the console of each host as root; what each printed."""
        with ThreadPoolExecutor(len(HOSTS)) as pool:
            return dict(zip(HOSTS, pool.map(lambda host: on(find_machine(self.lab, host), script), HOSTS), strict=True))

    def counts(self) -> dict[str, tuple[int, int]]:
        """The logins and the commands that each host's sshd has taken."""
        return {host: _pair(text) for host, text in self.on_all(COUNT).items()}

    def costs(self, before: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """The logins and commands of each host since then."""
        return {host: (now[0] - before[host][0], now[1] - before[host][1]) for host, now in self.counts().items()}

    def containers(self) -> dict[str, dict[str, Container]]:
        """What each host has of workspaces, asked of its Docker."""
        return {host: dict(map(_container, text.splitlines())) for host, text in self.on_all(CONTAINERS).items()}

    def runs_ended(self) -> None:
        """Wait until the one batch run of each host has ended."""
        patience = 'n=0; until cat /srv/workspaces/*/*-run/batch.json 2>/dev/null | grep -q \'"state":"ended"\''
        self.on_all(f"{patience}; do n=$((n + 1)); [ $n -le 1200 ] || exit 1; sleep 0.1; done")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux says EIO where the other end is closed
        return b""


def _pair(text: str) -> tuple[int, int]:
    first, second = map(int, text.split())
    return first, second


def _container(line: str) -> tuple[str, Container]:
    name, ident, started, port, gpus = (line + " ").split(" ")[:5]
    return name, Container(ident, started, int(port or 0), tuple(filter(None, gpus.split(","))))


def opened(lab: Lab) -> Ten:
    """The ten hosts with nobody's workspace, and the file that declares forty."""
    ten = Ten(lab, FrontDoor(lab))
    if READY not in read_snapshots(lab):
        _make_first(ten)
    fleet.up(lab, HOSTS, options=OPTIONS, snapshot=read_snapshots(lab)[READY])
    ten.on_all(f"{SETTLED}\n{WIPE}")  # of a run that was kept
    ten.declare(DECLARED)
    ten.seconds.clear()
    return ten


def _make_first(ten: Ten) -> None:
    """Bring the first host from bare to the stack without a workspace, make the image, and freeze it."""
    first = HOSTS[0]
    fleet.supply(ten.lab, OPTIONS)
    fleet.up(ten.lab, [first], options=OPTIONS)
    machine = find_machine(ten.lab, first)
    ten.declare({})
    ten.done("mirror", "--stack", "lab")
    ten.done("provision", "--hosts", first)
    images.load(machine, images.PYTHON)
    made = exec_in(machine, ["sh", "-euc", BUILD, "image", images.PYTHON.tag, TENSORFLOW], stdin=SERVER)
    assert made.returncode == 0, made.stderr
    on(machine, "echo 'LogLevel VERBOSE' >/etc/ssh/sshd_config.d/counted.conf")
    snapshots.freeze(machine, READY)
