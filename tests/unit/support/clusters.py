"""For tests of runs on a cluster: a site with one role and some hosts, and a worker that is not a process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostwright.apply.executors.cluster.cluster import brief_of as brief_from
from hostwright.apply.executors.cluster.messages import Brief, Message
from hostwright.apply.executors.cluster.sites import pack
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.run import Run
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.host.release import RunStamp
from hostwright.plan.roles.site import Site

RUN = RunStamp("20270101t000000-abcd", "anna@desk", "2027-01-01T00:00:00+00:00", "")
ROLE = '''"""A file, and whatever else a test wants."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.common.secret import Secret
from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.files import File


@dataclass(frozen=True)
class Hello:
    """What a host is told."""

    text: str = "hello"
    token: Secret = Secret("")


@role()
def hello(v: Hello, ctx: RoleContext) -> Iterator[Resource]:
    """Says hello."""
    yield File("/mnt/hello", v.text + "\\n")
'''
STACK: dict[str, Any] = {"distributions": {"debian": ["12"]}, "roles": ["hello"], "artifacts": {}}


def write_site(
    root: Path,
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    stack: Mapping[str, Any] | None = None,
    **shared: Any,
) -> Site:
    """Write a site to ``root`` with these hosts, and variables for all of them."""
    for folder in ("inventory/stacks", "roles/hello", "templates"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tasks.py").write_text("from hostwright.cli.tasks import *  # noqa: F403\n")
    (root / "roles/hello/__init__.py").write_text(ROLE)
    (root / "inventory/stacks/hello.yml").write_text(json.dumps({**STACK, **(stack or {})}))
    data = {
        "vars": {"stack": "hello", "hostwright_roles": ["hello"], **shared},
        "hosts": hosts or {"gpu01": {"ansible_host": "192.0.2.1"}},
    }
    (root / "inventory/hosts.yml").write_text(json.dumps({"all": data}))
    return Site(root)


def fleet_of(root: Path, hosts: Mapping[str, Mapping[str, Any]] | None = None, **shared: Any) -> Fleet:
    """The fleet of such a site."""
    return Fleet.load(site=write_site(root, hosts, **shared))


def brief_of(fleet: Fleet, request: Request | None = None) -> Brief:
    """The brief of a run on a fleet."""
    return brief_from(begun_on(fleet, request), (), pack(fleet))


def begun_on(fleet: Fleet, request: Request | None = None) -> Run:
    """A started run on a fleet."""
    return Run("provision", fleet, fleet.targets("all"), Connections(), request or fleet.request, stamp=RUN)


class Worker:
    """Replaces a cluster's worker, and records what it sends."""

    def __init__(self, address: str = "tls://192.0.2.9:4000", name: str = "w1"):
        self.address, self.name = address, name
        self.said: list[Message] = []
        self.topics: set[str] = set()
        self.plugins: dict[str, Any] = {}

    def log_event(self, topic: str, message: Mapping[str, Any]) -> None:
        self.topics.add(topic)
        self.said.append(Message.unpacked(message["body"]))

    @property
    def kinds(self) -> list[str]:
        """The kinds of messages and events sent, in order."""
        bodies = [message.body for message in self.said]
        return [type(getattr(body, "event", body)).__name__ for body in bodies]
