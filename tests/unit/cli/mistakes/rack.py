"""Hosts that can be changed from the desk: one sshd, and a tree of directories for each address."""

from __future__ import annotations

import json
import os
import platform
import pwd
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.lab.sshd import Sshd, running
from tests.unit.cli.mistakes.desk import Desk
from tests.unit.support.mounts import mounts

PLACES = ("/mnt", "/run", "/var/lib")  #: directories to which runs and the role below write, one tree for each host
HELLO, GO = "/mnt/hello", "/mnt/go"
ROLE = f'''"""A file, and then something that takes as long as another file is not there."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Probe, Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.conditions import Script
from hostwright.resources.files.files import File


@dataclass(frozen=True)
class Hello:
    """What a host is told."""

    text: str = "hello"
    slowly: bool = False


@role()
def hello(v: Hello, ctx: RoleContext) -> Iterator[Resource]:
    """Says hello."""
    yield File("{HELLO}", v.text + "\\n")
    if v.slowly:
        yield Script("patience", "there", Probe("test -e {GO} || {{ echo absent; exit 1; }}"),
                     "until [ -e {GO} ]; do sleep 0.1; done")
'''  # fmt: skip


@dataclass(frozen=True)
class Rack:
    """The hosts: their sshd, and the words that enter each host's directories."""

    sshd: Sshd
    enter: dict[str, tuple[str, ...]]

    def on(self, host: str, script: str) -> str:
        """Run a script on a host without SSH, and return its output."""
        command = [*self.enter[host], "/bin/sh", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@contextmanager
def rack(desk: Desk, *names: str) -> Iterator[Rack]:
    """Add these hosts to the inventory of the desk's site, each with only the role ``hello``."""
    with ExitStack() as stack:
        made = [f"mount -t tmpfs tmpfs {place}" for place in PLACES]
        enter = {name: stack.enter_context(mounts(*made))[1] for name in names}
        sshd = stack.enter_context(running())
        addresses = {name: f"127.0.79.{number}" for number, name in enumerate(names, 1)}
        sshd.stop()
        sshd.configure(*(f"ListenAddress {address}" for address in addresses.values()))
        with sshd.config.open("a") as config:
            config.writelines(_match(sshd, addresses[name], words) for name, words in enter.items())
        sshd.start()
        lines = (f"[{address}]:{sshd.port} {sshd.public_host_key}\n" for address in addresses.values())
        sshd.known_hosts.write_text("".join(lines))
        write_role(desk, ROLE)
        desk.write("inventory/hosts.yml", json.dumps(_inventory(sshd, addresses)))
        hosts = Rack(sshd, enter)
        try:
            yield hosts
        finally:
            for name in names:
                hosts.on(name, f"touch {GO}")  # a job without its run would wait for half an hour


def write_role(desk: Desk, text: str) -> None:
    """Write the role ``hello`` of the site, and a stack with only this role."""
    desk.write("roles/hello/__init__.py", text)
    desk.write("tests/layers/test_hello.py", 'def test_hello(host):\n    """It says hello."""\n    assert host\n')
    release = platform.freedesktop_os_release()
    stack = {"distributions": {release["ID"]: [release["VERSION_ID"]]}, "roles": ["hello"], "artifacts": {}}
    desk.write("inventory/stacks/hello.yml", json.dumps(stack))


def _match(sshd: Sshd, address: str, enter: Sequence[str]) -> str:
    script = Path(sshd.folder) / address
    script.write_text(f'#!/bin/sh\nexec {shlex.join(enter)} /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    script.chmod(0o755)
    return f"Match LocalAddress {address}\n  ForceCommand {script}\n"


def _inventory(sshd: Sshd, addresses: dict[str, str]) -> dict[str, object]:
    shared = {
        "stack": "hello",
        "hostwright_roles": ["hello"],
        "ansible_port": sshd.port,
        "ansible_user": pwd.getpwuid(os.getuid()).pw_name,
        "ansible_timeout": 120,  # login on a busy machine may be slower than on a healthy host
        "ansible_ssh_private_key_file": str(sshd.key),
        "hostwright_known_hosts": str(sshd.known_hosts),
    }
    hosts = {name: {"ansible_host": address} for name, address in addresses.items()}
    return {"all": {"hosts": hosts, "vars": shared}}
