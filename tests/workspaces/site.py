"""What the tests declare for their one host, and the people on it with their keys."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hostwright.common.quoting import sh
from hostwright.fleet import Fleet
from hostwright.standard.roles.workspaces.declared.workspace import STATE, Workspace, workspaces_of
from lab import images
from lab.config import USER, Lab, Machine, cache_directory
from lab.image import ensure_base
from lab.machine import inside
from tests.lab.conftest import FrontDoor, on

HOST = "people01"
ROLES = ["base", "driver", "container", "workspaces", "proxy"]
#: alice is known by her uid alone, bob by an account of the host
ALICE_UID = 2001
IMAGE = images.TENSORFLOW.tag
BASE = "people/debian:11"  #: the lab's own root filesystem, as it is
BOX = "people/desk:1"  #: that with the TensorFlow and Jupyter of the other image, and an environment of its own
HELLO = "/opt/people/bin"  #: first in that environment's PATH, and with a program `hello`
WORDS = "two words, 100% and a $dollar"
DOCKERFILE = f"""\
FROM {BASE}
COPY --from={images.TENSORFLOW.tag} /usr/local /usr/local
ENV PATH={HELLO}:$PATH LANG=C.UTF-8 LD_LIBRARY_PATH=/opt/people/lib PEOPLES_WORDS='{WORDS}'
RUN mkdir -p {HELLO} && printf '#!/bin/sh\\necho hello\\n' >{HELLO}/hello && chmod 755 {HELLO}/hello
"""
PORT = 8443  #: of the proxy


@dataclass(frozen=True)
class Site:
    """One host, its inventory, and the people on it."""

    lab: Lab
    machine: Machine
    invoke: FrontDoor

    @property
    def folder(self) -> Path:
        """The inventory."""
        return self.lab.inventory.parent

    def key(self, person: str) -> Path:
        """The person's private key, made once."""
        path = self.lab.state / "people" / person
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            words = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", person, "-f", str(path))
            subprocess.run(words, check=True)
        return path

    @property
    def entry(self) -> dict[str, object]:
        """What is the same in all that is declared."""
        return {"image": IMAGE, "cpus": 1, "memory": "4g"}

    def declare(self, **changed: Any) -> None:
        """Write everything that is declared, with some workspaces of the host changed or added."""
        keys = {person: self.key(person).with_suffix(".pub").read_text().strip() for person in ("alice", "bob")}
        entry = self.entry
        containers = {
            "alice-lab": {"user": "alice", "kind": "jupyter", **entry},
            "bob-lab": {"user": "bob", "kind": "jupyter", **entry},
            "alice-box": {"user": "alice", "kind": "ssh", **entry, "image": BOX},
            "bob-box": {"user": "bob", "kind": "ssh", **entry, "image": BOX},
            "alice-board": {
                "user": "alice",
                "kind": "tensorboard",
                "mounts": ["/srv/workspaces/alice/alice-lab:/data:ro"],
                "logs": "/data/logs",
                **entry,
            },
            **changed,
        }
        people = {"alice": {"uid": ALICE_UID, "keys": [keys["alice"]]}, "bob": {"keys": [keys["bob"]]}}
        document = {
            "all": {
                "vars": {"workspaces_users": people, "proxy_listen": [str(PORT)]},
                "hosts": {
                    HOST: {
                        "hostwright_roles": ROLES,
                        "workspaces_containers": {name: space for name, space in containers.items() if space},
                    }
                },
            }
        }
        (self.folder / "workspaces.yml").write_text(yaml.safe_dump(document, sort_keys=False))

    def images(self) -> None:
        """TensorFlow's comes as an operator brings it; that of people's boxes is made on the host."""
        self.succeeds("images.push", "--hosts", HOST, "--archive", str(images.ensure(images.TENSORFLOW)))
        base = ensure_base("bullseye", cache_directory())
        with subprocess.Popen(("tar", "-C", str(base), "-c", "."), stdout=subprocess.PIPE) as tar:
            subprocess.run(inside(self.machine, ["docker", "import", "-", BASE]), stdin=tar.stdout, check=True)
        on(self.machine, f"printf '%s' {sh('%s', DOCKERFILE)} | docker build -q -t {BOX} -")

    def accounts(self) -> None:
        """bob has an account on the host, with his key."""
        public = self.key("bob").with_suffix(".pub").read_text()
        script = f"""
        id bob >/dev/null 2>&1 || useradd --create-home --shell /bin/bash bob
        install -d -o bob -g bob -m 700 ~bob/.ssh
        printf '%s' {sh("%s", public)} >~bob/.ssh/authorized_keys
        chown bob:bob ~bob/.ssh/authorized_keys"""
        on(self.machine, script)

    def succeeds(self, *words: str) -> str:
        """Run one verb, which must succeed; what it printed."""
        done = self.invoke(*words)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def space(self, name: str) -> Workspace:
        """A declared workspace."""
        v: Any = Fleet.load(self.folder).targets(HOST)[0].variables["workspaces"]
        return next(s for s in workspaces_of(v.containers, v.users, v.directory, v.ports) if s.name == name)

    def token(self, name: str) -> str:
        """What `workspace.url --token` prints of a Jupyter."""
        tokens = set(re.findall(r"\?token=(\w+)", self.succeeds("workspace.url", "--name", name, "--token")))
        assert len(tokens) == 1
        return tokens.pop()


__all__ = ["HOST", "STATE", "USER", "Site"]
