"""Ten hosts of one sshd, each with its own address and directories, and a site that names them."""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.liars import liar
from tests.lab.sshd import Sshd, running

GOOD = tuple(f"gpu{number}" for number in range(1, 10))
LIAR = "liar"
ADDRESSES = {name: f"127.0.77.{number}" for number, name in enumerate((*GOOD, LIAR), start=1)}
FILE = "/mnt/hello"
ROLE = '''"""A file on a disk that is each host's own."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.files import File


@dataclass(frozen=True)
class Hello:
    """What a host is told."""

    text: str = "hello"


@role()
def hello(v: Hello, ctx: RoleContext) -> Iterator[Resource]:
    """Says hello."""
    yield File("/mnt/hello", v.text + "\\n")
'''
CHECK = '''"""Whether hello was said."""


def test_hello(host):
    """The file says hello."""
    assert host.file("/mnt/hello").content_string == "hello\\n"
'''


@dataclass(frozen=True)
class Ten:
    """The site, and control over the behaviour of the false host."""

    root: Path
    sshd: Sshd
    kept: dict[str, int]  #: host → process whose mount namespace has its directories

    def lies(self, kind: str) -> None:
        (self.sshd.folder / "kind").write_text(kind)

    def on(self, host: str, command: str) -> str:
        """Run a command on a host without SSH; return its output."""
        done = subprocess.run(
            ["nsenter", "-m", "-t", str(self.kept[host]), "/bin/sh", "-c", command],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def bare(self) -> None:
        """Reset every host to its untouched state."""
        for host in self.kept:
            self.on(host, f"rm -rf {FILE} /var/lib/hostwright/* /run/hostwright/*")


@contextmanager
def _directories() -> Iterator[int]:
    """A process with a tmpfs at each path that a run writes to."""
    places = ("/mnt", "/var/lib/hostwright", "/run/hostwright", "/var/cache/hostwright")
    for place in places:
        Path(place).mkdir(parents=True, exist_ok=True)
    mounts = "; ".join(f"mount -t tmpfs tmpfs {place}" for place in places)
    command = ["unshare", "-m", "/bin/sh", "-ec", f"{mounts}; echo; exec sleep 3600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            yield process.pid
        finally:
            process.kill()


@contextmanager
def ten_hosts(root: Path) -> Iterator[Ten]:
    """The hosts, and the site in ``root``."""
    with ExitStack() as stack:
        kept = {name: stack.enter_context(_directories()) for name in ADDRESSES}
        sshd = stack.enter_context(running())
        matches = []
        for name, pid in kept.items():
            command = f'exec nsenter -m -t {pid} /bin/sh -c "$SSH_ORIGINAL_COMMAND"'
            if name == LIAR:
                program = shlex.join([sys.executable, str(Path(liar.__file__))])
                command = f'exec {program} "$(cat {sshd.folder}/kind)" {pid}'
            (sshd.folder / name).write_text(f"#!/bin/sh\n{command}\n")
            (sshd.folder / name).chmod(0o755)
            matches.append(f"Match LocalAddress {ADDRESSES[name]}\n  ForceCommand {sshd.folder}/{name}")
        sshd.stop()
        listens = [f"ListenAddress {address}" for address in ADDRESSES.values()]
        sshd.configure(*listens)
        with sshd.config.open("a") as config:
            config.write("\n".join(matches) + "\n")
        sshd.start()
        sshd.known_hosts.write_text(
            "".join(f"[{address}]:{sshd.port} {sshd.public_host_key}\n" for address in ADDRESSES.values())
        )
        _write_site(root, sshd)
        yield Ten(root, sshd, kept)


def _write_site(root: Path, sshd: Sshd) -> None:
    for folder in ("inventory/stacks", "roles/hello", "tests/layers"):
        (root / folder).mkdir(parents=True)
    (root / "tasks.py").write_text("from hostwright.cli.tasks import *  # noqa: F403\n")
    (root / "roles/hello/__init__.py").write_text(ROLE)
    (root / "tests/layers/test_hello.py").write_text(CHECK)
    release = platform.freedesktop_os_release()
    stack = {"distributions": {release["ID"]: [release["VERSION_ID"]]}, "roles": ["hello"], "artifacts": {}}
    (root / "inventory/stacks/hello.yml").write_text(json.dumps(stack))
    shared = {
        "stack": "hello",
        "hostwright_roles": ["hello"],
        "ansible_port": sshd.port,
        "ansible_user": "root",
        "ansible_timeout": 120,  # a login may take longer on a busy machine than on a healthy host
        "ansible_ssh_private_key_file": str(sshd.key),
        "hostwright_known_hosts": str(sshd.known_hosts),
    }
    hosts = {name: {"ansible_host": address} for name, address in ADDRESSES.items()}
    (root / "inventory/hosts.yml").write_text(json.dumps({"all": {"hosts": hosts, "vars": shared}}))
