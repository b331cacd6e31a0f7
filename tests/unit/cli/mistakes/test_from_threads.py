"""What users of Ansible, pyinfra, Fabric and others typed or wrote, and what confused them, as their trackers tell it.

What is right of each was written down from the threads, before any of it was tried. When the second half was tried,
nothing had been built on it: five of ten were right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.cli.mistakes.desk import Desk

VAULTED = "secret: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n"


@dataclass(frozen=True)
class Case:
    """A line, with files of the site, and what is right: the exit status, what is named, and what is not."""

    source: str
    line: str
    status: int
    names: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    sentences: int = 1  #: on standard error, where the status is 2


CASES = (
    # ------------------------------------------------------------ used while this was written
    Case("ansible/ansible#32594", "hosts --hosts 'all,!gpu3'", 2, ("gpu3", "gpu0", "inventory")),
    Case("ansible/ansible#61964", "hosts --hosts gpu01,,gpu02,", 0, ("2 hosts",)),
    Case("ansible/ansible#62848", "vars gpu01 --var '  note=hello' --json", 0, ('"note": "hello"',)),
    Case(
        "ansible/ansible#43720", "hosts", 2, ("inventory/hosts.yml:3", "gpu01"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    gpu01\n    gpu02\n"},
    ),
    Case(
        "d-vb/onionpi#1", "hosts", 2, ("inventory/hosts.yml:2", "rack3", "children"),
        {"inventory/hosts.yml": "all:\n  rack3:\n    hosts:\n      gpu01: {}\n"},
    ),
    Case(
        "roots/trellis#711", "vars gpu01 --vault-password-file pass", 2, ("pass", "chmod -x"),
        {"pass!": "hunter2\n", "inventory/group_vars/all.yml": VAULTED},
    ),
    Case(
        "ansible/ansible#17589", "hosts --inventory cloud.sh", 2, ("cloud.sh", "chmod +x"),
        {"cloud.sh": '#!/bin/sh\necho "{}"\n'},
    ),
    Case("pyinfra-dev/pyinfra#722", "run --hosts 192.0.2.9 -- echo hello", 2, ("192.0.2.9", "inventory")),
    Case("RhetTbull/osxphotos#1437", "hosts --hosts “gpu01,gpu02”", 2, ("“", "quotes")),
    Case("fabric/fabric#1900", "hosts gpu01 -- echo hello", 2, ("--", "echo hello", "run")),
    # ------------------------------------------------------------ unseen until the first half was mended
    Case("ansible/ansible#85278", "hosts --hosts ,", 2, ("--hosts gpu01",), never=("2 hosts",)),
    Case("ansible/ansible#61497", "vars gpu01 --var ' '", 2, ("--var", "KEY=VALUE")),
    Case("ansible/ansible#8321", "vars gpu01 --var note=a=b --json", 0, ('"note": "a=b"',)),
    Case(
        "ansible/ansible#22567", "hosts", 2, ("inventory/hosts.yml:3", "gpu01"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    - gpu01\n    - gpu02\n"},
    ),
    Case(
        "ansible/ansible#16903", "hosts", 2, ("inventory/hosts.yml:4", "hosts"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    gpu01: {}\n  hosts:\n    gpu02: {}\n"},
    ),
    Case(
        "ansible/ansible#26048", "hosts gpu01", 0, ("1 host: gpu01",),
        {"inventory/hosts.yml": "\ufeffall: {hosts: {gpu01: {}}}\n"}, never=("\ufeff",),
    ),
    Case(
        "ansible/ansible#17382", "vars gpu01 --json", 0, ('"note": "mine"',),
        {"inventory/host_vars/gpu01.yml": "note: mine\n", "inventory/host_vars/gpu01.yml~": "note: old\n"},
        never=("old",),
    ),
    Case(
        "pyinfra-dev/pyinfra#1731", "hosts", 2, ("inventory/hosts.yml:1", "all"),
        {"inventory/hosts.yml": "- gpu01\n- gpu02\n"},
    ),
    Case("fabric/fabric#1669", "hosts --hosts gpu01 --hosts gpu02", 2, ("--hosts", "gpu01,gpu02"), never=("1 host:",)),
    Case("ansible/ansible#10124", "hosts --hosts 'gpu01;gpu02'", 2, ("gpu01;gpu02", "gpu01,gpu02")),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.source)
def test_what_confused_users_of_others(case: Case, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name, text in case.files.items():
        desk.write(name.rstrip("!"), text, executable=name.endswith("!"))
    said = desk.types(case.line)
    whole = said.out + said.err
    assert said.status == case.status, whole
    assert [name for name in case.names if name not in whole] == [], whole
    assert [name for name in case.never if name in whole] == [], whole
    if said.status == 2:
        assert said.out == ""
        assert said.sentences == case.sentences, said.err
