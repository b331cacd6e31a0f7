"""A site with one host of a false SSH server, without changes and with one check."""

from __future__ import annotations

import json
import platform
from pathlib import Path

ROLE = '''"""Nothing is wanted of a host."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role


@dataclass(frozen=True)
class Quiet:
    """No variables."""


@role()
def quiet(v: Quiet, ctx: RoleContext) -> Iterator[Resource]:
    """Wants nothing."""
    yield from ()
'''
CHECK = '''"""Whether a host answers."""


def test_it_answers(host):
    """The host answers."""
    assert host.run("echo hello").stdout == "hello\\n"
'''


def write_site(root: Path, port: int, known_hosts: Path, key: Path, *, timeout_s: float = 300) -> None:
    """Write the site into ``root``; its host ``liar`` is at this port."""
    for folder in ("inventory/stacks", "roles/quiet", "tests/layers"):
        (root / folder).mkdir(parents=True)
    (root / "tasks.py").write_text("from hostwright.cli.tasks import *  # noqa: F403\n")
    (root / "roles/quiet/__init__.py").write_text(ROLE)
    (root / "tests/layers/test_quiet.py").write_text(CHECK)
    release = platform.freedesktop_os_release()
    stack = {"distributions": {release["ID"]: [release["VERSION_ID"]]}, "roles": ["quiet"], "artifacts": {}}
    (root / "inventory/stacks/quiet.yml").write_text(json.dumps(stack))
    liar = {
        "stack": "quiet",
        "hostwright_roles": ["quiet"],
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(key),
        "hostwright_known_hosts": str(known_hosts),
        "ansible_timeout": timeout_s,
    }
    (root / "inventory/hosts.yml").write_text(json.dumps({"all": {"hosts": {"liar": liar}}}))
