"""No network, no mirror, an unset proxy: the message names what cannot be reached, from where, and the fix."""

from __future__ import annotations

import hashlib
import json
import socket

import pytest

from tests.unit.cli.mistakes.desk import Desk
from tests.unit.cli.mistakes.rack import HELLO, rack, write_role
from tests.unit.cli.mistakes.rack import ROLE as NOTHING
from tests.unit.support.mounts import ROOT

#: a network namespace with only an interface that is down
OFFLINE = ("unshare", *(() if ROOT else ("--map-root-user",)), "-n")
CURE = "`hostwright mirror --from DIR`"


def hosts(desk: Desk, **variables: object) -> None:
    desk.write("inventory/hosts.yml", json.dumps({"all": {"hosts": {"gpu01": variables}}}))


UNREACHED = {
    "a name, offline": ({"ansible_host": "gpu01.example.org"}, ("cannot be resolved", "is this machine online?")),
    "no address, offline": ({}, ("the name 'gpu01' cannot be resolved", "ansible_host")),
    "an address, offline": ({"ansible_host": "192.0.2.11"}, ("192.0.2.11:22", "is this machine online?")),
    "an address of IPv6, offline": ({"ansible_host": "2001:db8::1"}, ("[2001:db8::1]:22", "is this machine online?")),
    "behind a jump host, offline": (
        {"ansible_host": "192.0.2.11", "ansible_ssh_common_args": "-J bastion.example.org"},
        ("its jump host", "'bastion.example.org' cannot be resolved", "is this machine online?"),
    ),
}


@pytest.mark.parametrize("what", UNREACHED)
def test_a_host_cannot_be_reached_from_here(desk: Desk, what: str) -> None:
    variables, says = UNREACHED[what]
    hosts(desk, **variables)
    said = desk.types("plan gpu01", within=OFFLINE)
    assert (said.status, said.sentences) == (1, 1), said
    assert [part for part in ("gpu01: ", *says) if part not in said.err] == [], said.err


def test_a_name_that_is_wrong(desk: Desk) -> None:
    """The name servers report that the name does not exist: the inventory is wrong, not the network."""
    hosts(desk, ansible_host="gpu01.rack3..example.org")
    said = desk.types("plan gpu01")
    assert (said.status, said.sentences) == (1, 1), said
    for part in ("gpu01: ", "gpu01.rack3..example.org", "cannot be resolved", "ansible_host"):
        assert part in said.err


def test_the_files_of_a_stack_cannot_be_downloaded(desk: Desk) -> None:
    """One sentence for all files, without Python's own error texts."""
    store = str(desk.folder / "mirror")
    said = desk.types("mirror --stack tensorflow-2.9", within=OFFLINE, env={"HOSTWRIGHT_ARTIFACTS": store})
    (sentence,) = said.err.splitlines()
    assert said.status == 1
    for part in ("6 files", "developer.download.nvidia.com", "cannot be resolved", "https_proxy", CURE, "cudnn"):
        assert part in sentence, sentence
    assert "Errno" not in sentence


def test_the_proxy_is_wrong(desk: Desk) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        env = {"https_proxy": f"http://ann:hunter2@127.0.0.1:{port}", "HOSTWRIGHT_ARTIFACTS": str(desk.folder / "m")}
        said = desk.types("mirror --stack tensorflow-2.9", env={**env, "HTTPS_PROXY": env["https_proxy"]})
    (sentence,) = said.err.splitlines()
    assert said.status == 1
    for part in ("6 files", f"the proxy 127.0.0.1:{port}", "Connection refused", "https_proxy"):
        assert part in sentence, sentence
    assert "hunter2" not in said.out + said.err


def test_there_is_nothing_to_download(desk: Desk) -> None:
    write_role(desk, NOTHING)
    desk.write("inventory/hosts.yml", "all: {hosts: {gpu01: {stack: hello, hostwright_roles: [hello]}}}\n")
    said = desk.types("mirror", within=OFFLINE)
    assert (said.status, said.err) == (0, "")
    assert said.out == "nothing to download: the roles of these hosts need no files of a stack\n"


SECTION = '''"""What a stack says of it."""

from typing import Annotated

from hostwright.stack.stack import Section
from hostwright.stack.stackvalues import ArtifactName


class HelloSection(Section):
    """The file that a host gets."""

    tool: Annotated[str, ArtifactName]
'''
ROLE = '''"""A file of the stack."""

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role
from hostwright.resources.files.archives import Delivered

from .section import HelloSection


@dataclass(frozen=True)
class Hello:
    """Nothing."""


@role()
def hello(v: Hello, ctx: RoleContext) -> Iterator[Resource]:
    """Brings the file."""
    yield Delivered("/mnt/hello", ctx.stack.artifact(ctx.section(HelloSection).tool))
'''


def test_no_mirror(desk: Desk) -> None:
    """A host's files are missing on this machine. The command in the message downloads them."""
    env = {"HOSTWRIGHT_ARTIFACTS": str(desk.folder / "mirror")}
    content = b"#!/bin/sh\necho hello\n"
    with rack(desk, "gpu01") as there:
        desk.write("roles/hello/section.py", SECTION)
        desk.write("roles/hello/__init__.py", ROLE)
        stack = json.loads((desk.site / "inventory/stacks/hello.yml").read_text())
        tool = {"file": "tool", "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        stack |= {"artifacts": {"tool": tool}, "hello": {"tool": "tool"}}
        desk.write("inventory/stacks/hello.yml", json.dumps(stack))
        said = desk.types("provision gpu01", env=env)
        (sentence,) = [line for line in said.err.splitlines() if line.startswith("gpu01: ")]
        assert said.status == 1, said
        for part in ("tool", "is not on this machine", "run `hostwright mirror`", "--from DIR"):
            assert part in sentence, sentence
        assert there.on("gpu01", f"ls {HELLO}") == ""
        desk.write("downloads/tool", content.decode())
        assert desk.types("mirror --from downloads", env=env).status == 0
        assert desk.types("provision gpu01", env=env).status == 0
        assert there.on("gpu01", f"cat {HELLO}") == content.decode()
