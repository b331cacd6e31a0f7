"""Calls and files of users of Ansible, pyinfra, Fabric and other tools that confused them, from public issue trackers.

The expected results were written from the threads before any of them was tried. When the second half was tried, nothing
had been built for it: five of ten were right. Of a second collection, five of 21 were right when its first half was
tried, and eleven of the other 21 after fixes for the first half. Five expectations were changed then, because the
actual behaviour is as good: ``gpu01:gpu02`` names two hosts, as in Ansible; INI in a file with another name is read.
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
    """A call with files of the site, and the expected exit status, required words and forbidden words."""

    source: str
    line: str
    status: int
    names: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    sentences: int = 1  #: on standard error, where the status is 2
    where: str = ""  #: the working directory, from the site


CASES = (
    # ------------------------------------------------------------ used during development
    Case("ansible/ansible#32594", "hosts --hosts 'all,!gpu3'", 2, ("gpu3", "gpu0", "inventory")),
    Case("ansible/ansible#61964", "hosts --hosts gpu01,,gpu02,", 0, ("2 hosts",)),
    Case("ansible/ansible#62848", "vars gpu01 --var '  note=hello' --json", 0, ('"note": "hello"',)),
    Case(
        "ansible/ansible#43720",
        "hosts",
        2,
        ("inventory/hosts.yml:3", "gpu01"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    gpu01\n    gpu02\n"},
    ),
    Case(
        "d-vb/onionpi#1",
        "hosts",
        2,
        ("inventory/hosts.yml:2", "rack3", "children"),
        {"inventory/hosts.yml": "all:\n  rack3:\n    hosts:\n      gpu01: {}\n"},
    ),
    Case(
        "roots/trellis#711",
        "vars gpu01 --vault-password-file pass",
        2,
        ("pass", "chmod -x"),
        {"pass!": "hunter2\n", "inventory/group_vars/all.yml": VAULTED},
    ),
    Case(
        "ansible/ansible#17589",
        "hosts --inventory cloud.sh",
        2,
        ("cloud.sh", "chmod +x"),
        {"cloud.sh": '#!/bin/sh\necho "{}"\n'},
    ),
    Case("pyinfra-dev/pyinfra#722", "run --hosts 192.0.2.9 -- echo hello", 2, ("192.0.2.9", "inventory")),
    Case("RhetTbull/osxphotos#1437", "hosts --hosts “gpu01,gpu02”", 2, ("“", "quotes")),
    Case("fabric/fabric#1900", "hosts gpu01 -- echo hello", 2, ("--", "echo hello", "run")),
    # ------------------------------------------------------------ not used until the first half was fixed
    Case("ansible/ansible#85278", "hosts --hosts ,", 2, ("--hosts gpu01",), never=("2 hosts",)),
    Case("ansible/ansible#61497", "vars gpu01 --var ' '", 2, ("--var", "KEY=VALUE")),
    Case("ansible/ansible#8321", "vars gpu01 --var note=a=b --json", 0, ('"note": "a=b"',)),
    Case(
        "ansible/ansible#22567",
        "hosts",
        2,
        ("inventory/hosts.yml:3", "gpu01"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    - gpu01\n    - gpu02\n"},
    ),
    Case(
        "ansible/ansible#16903",
        "hosts",
        2,
        ("inventory/hosts.yml:4", "hosts"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    gpu01: {}\n  hosts:\n    gpu02: {}\n"},
    ),
    Case(
        "ansible/ansible#26048",
        "hosts gpu01",
        0,
        ("1 host: gpu01",),
        {"inventory/hosts.yml": "\ufeffall: {hosts: {gpu01: {}}}\n"},
        never=("\ufeff",),
    ),
    Case(
        "ansible/ansible#17382",
        "vars gpu01 --json",
        0,
        ('"note": "mine"',),
        {"inventory/host_vars/gpu01.yml": "note: mine\n", "inventory/host_vars/gpu01.yml~": "note: old\n"},
        never=("old",),
    ),
    Case(
        "pyinfra-dev/pyinfra#1731",
        "hosts",
        2,
        ("inventory/hosts.yml:1", "all"),
        {"inventory/hosts.yml": "- gpu01\n- gpu02\n"},
    ),
    Case("fabric/fabric#1669", "hosts --hosts gpu01 --hosts gpu02", 2, ("--hosts", "gpu01,gpu02"), never=("1 host:",)),
    Case("ansible/ansible#10124", "hosts --hosts 'gpu01;gpu02'", 2, ("gpu01;gpu02", "gpu01,gpu02")),
    # ------------------------------------------------------------ a second collection: the half used during development
    Case("hashicorp/terraform#19987", "hosts --site inventory", 2, ("inventory is not a site", "--site .")),
    Case("kubernetes/kubernetes#28626", "plan host gpu01", 2, ("'host'", "hostwright plan gpu01")),
    Case("kubernetes/kubernetes#9522", "ssh", 2, ("ssh needs HOST", "--help ssh")),
    Case("kubernetes/kubernetes#112265", "hosts -hosts gpu01", 2, ("-hosts", "did you mean --hosts")),
    Case("ansible/ansible#15579", "hosts gpu01:gpu02", 0, ("2 hosts",)),
    Case("ansible/ansible#14693", "verify --hosts gpu09", 2, ("gpu09", "did you mean 'gpu0")),
    Case(
        "ansible/ansible#34760",
        "hosts",
        0,
        ("2 hosts",),
        {
            "inventory/hosts.yml": "all:\n  hosts:\n    gpu01:\n  children:\n    rack3:\n      hosts:\n"
            "      children:\n        rack3a:\n          hosts:\n            gpu02:\n"
        },
    ),
    Case(
        "ansible/ansible#30586",
        "hosts",
        2,
        ("inventory/hosts.ini:1", "YAML", "hosts.yml"),
        {"inventory/hosts.yml": "", "inventory/hosts.ini": "all:\n  hosts:\n    gpu01:\n      ansible_user: root\n"},
    ),
    Case(
        "ansible/ansible#31290",
        "hosts",
        2,
        ("inventory/hosts.yml:1", "playbook"),
        {"inventory/hosts.yml": "- hosts: all\n  roles: [base]\n"},
    ),
    Case(
        "ansible/ansible#8076",
        "hosts --inventory notes",
        2,
        ("notes", "no inventory"),
        {"notes/README.md": "nothing\n"},
    ),
    Case(
        "ansible/ansible intro_patterns.rst",
        "hosts 192.0.2.11",
        2,
        ("192.0.2.11", "gpu01"),
        {"inventory/hosts.yml": "all: {hosts: {gpu01: {ansible_host: 192.0.2.11}, gpu02: {}}}\n"},
    ),
    Case(
        "fabric/fabric#623",
        "plan gpu01",
        2,
        ("inventory/hosts.yml:3", "ansible_host"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    gpu01: {ansible_host: '192.0.2.11 '}\n"},
    ),
    Case("eclipse-xpanse/xpanse#726", "vars gpu01 --var motd=Ubuntu 22.04", 2, ("22.04", "quotes")),
    Case(
        "charleszipp/azure-pipelines-tasks-terraform#41", "provision gpu01 -auto-approve", 2, ("-auto-approve", "--yes")
    ),
    Case("microsoft/azure-pipelines-terraform#34", "plan gpu01 -out ours.plan", 2, ("-out", "did you mean --out")),
    Case("ansible/ansible#6449", "plan --limit gpu01", 2, ("--limit", "--hosts")),
    Case("pyinfra-dev/pyinfra#723", "deploy gpu01", 2, ("unknown verb 'deploy'", "'provision'")),
    Case("piyushsachdeva/AzureDevOps-Zero-to-Hero#10", "destroy gpu01", 2, ("unknown verb 'destroy'", "'remove'")),
    Case("kubernetes/kubernetes#27049", "help plan", 0, ("Usage: hostwright plan",)),
    Case("openshift/origin#4226", "host gpu01", 2, ("unknown verb 'host'", "'hosts'")),
    Case("ansible/ansible#11301", "hosts -i fleet.yml", 2, ("-i", "--inventory")),
    # ------------------------------------------------------------ and the other half
    Case("kubernetes/kubernetes#25180", "list", 2, ("unknown verb 'list'", "'hosts'")),
    Case("kubernetes/kubernetes#25181", "delete gpu01", 2, ("unknown verb 'delete'", "'remove'")),
    Case("hashicorp/terraform#16880", "hosts", 2, ("no site found", "--site fleet"), where=".."),
    Case("hashicorp/docker-hub-images#59", "hosts --site inventory/hosts.yml", 2, ("inventory/hosts.yml", "directory")),
    Case("kubernetes-retired/kubefed#1121", "hosts -json", 2, ("-json", "did you mean --json")),
    Case("wso2/ansible-apim#98", "plan gpu01 -K", 2, ("-K", "--ask-become-pass")),
    Case("pyinfra-dev/pyinfra#267", "plan gpu01 --user root", 2, ("--user", "ansible_user")),
    Case("ansible/ansible#11457", "plan gpu01 --become", 2, ("--become", "sudo")),
    Case("ansible/ansible#52152", "plan @rack3,!gpu01,!gpu02", 2, ("@rack3,!gpu01,!gpu02", "no host")),
    Case(
        "ansible/ansible#31118",
        "hosts",
        2,
        ("inventory/hosts.yml:4", "ansible_host: 192.0.2.11"),
        {"inventory/hosts.yml": "all:\n  hosts:\n    gpu01:\n      ansible_host=192.0.2.11\n"},
    ),
    Case(
        "ansible/ansible#56241",
        "hosts",
        0,
        ("1 host: gpu01",),
        {"inventory/hosts.yml": "---\nall:\n  hosts:\n    gpu01:\n...\n"},
    ),
    Case(
        "geerlingguy/mac-dev-playbook#83",
        "hosts",
        0,
        ("1 host: gpu01",),
        {"inventory/hosts.yml": "[rack3]\ngpu01 ansible_host=192.0.2.11\n"},
    ),
    Case(
        "ansible/ansible#42731",
        "hosts",
        2,
        ("inventory/hosts.yml:", "rack3"),
        {"inventory/hosts.yml": "all:\n  children:\n    rack3\n      hosts:\n        gpu01: {}\n"},
    ),
    Case(
        "ansible/ansible#23512",
        "hosts",
        0,
        ("inventory/hosts.ini:3", "192.0.2.1", "ansible_host"),
        {
            "inventory/hosts.yml": "",
            "inventory/hosts.ini": "[rack3]\n192.0.2.1 ansible_port=22\n192.0.2.1 ansible_port=23\n",
        },
    ),
    Case("fabric/fabric#138", "run --hosts gpu01:2222 -- uptime", 2, ("gpu01:2222", "ansible_port")),
    Case("alphagov/fabric-scripts#227", "hosts ops@gpu01", 2, ("ops@gpu01", "ansible_user")),
    Case(
        "kubernetes/kubernetes#82806", "run gpu01 nvidia-smi -L", 2, ("hostwright run --hosts gpu01 -- nvidia-smi -L",)
    ),
    Case("kubernetes/kubectl#1745", "run gpu01 asd -- uptime", 2, ("asd",)),
    Case("chatmail/relay#376", "remove gpu01 -y", 2, ("-y", "--yes")),
    Case("hashicorp/terraform#29838", "apply gpu01", 2, ("unknown verb 'apply'", "'provision'")),
    Case("ansible/ansible#15861", "plan -l gpu01", 2, ("-l", "--hosts")),
    # ------------------------------------------------------------ the console's own collection (test_streams)
    Case("pyinvoke/invoke#33", "--list nosuch", 2, ("nosuch", "hostwright --list")),
    Case("pyinvoke/invoke#33 nearly", "--list audti", 2, ("audti", "did you mean 'audit'")),
    Case("fabric/fabric#134", "--list plan", 2, ("plan is a verb", "hostwright --help plan")),
    Case("kubernetes/kompose#169", "plan gpu01 --out -", 2, ("--out", "standard output")),
    Case("nickdiego/compiledb#62", "mirror --export -", 2, ("--export", "standard output")),
    Case("hsinnan75/MapCaller#52", "init -", 2, ("init", "standard output")),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.source)
def test_what_confused_users_of_others(case: Case, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name, text in case.files.items():
        desk.write(name.rstrip("!"), text, executable=name.endswith("!"))
    said = desk.types(case.line, where=(desk.site / case.where).resolve())
    whole = said.out + said.err
    assert said.status == case.status, whole
    assert [name for name in case.names if name not in whole] == [], whole
    assert [name for name in case.never if name in whole] == [], whole
    if said.status == 2:
        assert said.out == ""
        assert said.sentences == case.sentences, said.err
