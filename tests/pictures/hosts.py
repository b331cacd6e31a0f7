"""The hosts of the pictures: their names, what becomes of each, and the site that names them."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Literal

import yaml

Kind = Literal["as desired", "changed", "pending", "failed", "unreachable", "locked", "bare"]

MODEL, NEWER = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"

#: group → host → what becomes of it
GROUPS: dict[str, dict[str, Kind]] = {
    "green": dict.fromkeys(("gpu01", "gpu02", "gpu03", "gpu04"), "as desired"),
    "bare": {"ux01": "changed", "ux02": "changed", "ux03": "pending"},
    "new": {"new01": "bare", "new02": "bare"},
    "broken": {"train01": "changed", "train02": "failed", "train03": "as desired"},
    "silent": {"edge01": "as desired", "edge02": "unreachable"},
    "kept": {"keep01": "locked", "keep02": "as desired"},
    "long": {
        "a100-rack12-07.research.example.org": "changed",
        "a100-rack12-08.research.example.org": "failed",
        "h.example.org": "as desired",
    },
    "fleet": {
        f"node{number:03}": "failed" if number % 50 == 7 else "unreachable" if number % 60 == 9 else
        "locked" if number == 100 else "changed" if number % 3 else "as desired"
        for number in range(1, 301)
    },
}  # fmt: skip
#: hosts with workspaces, models and a registry, for the verbs of roles; Docker is silent on the one that failed
PEOPLE: dict[str, Kind] = {"lab01": "changed", "lab02": "failed", "lab03": "unreachable", "lab04": "bare"}
KINDS: dict[str, Kind] = {name: kind for group in (*GROUPS.values(), PEOPLE) for name, kind in group.items()}
ROLES = ["base", "driver", "container", "workspaces", "serving"]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAID0Fl7l3eLK+d4Ez/PEEPGzn7MBQubH104CYzFf9H3gs alice@desk"
SPACES = {
    "alice-lab": {"user": "alice", "kind": "jupyter", "gpus": [0], "image": "lab/jupyter:1", "share": True},
    "alice-box": {"user": "alice", "kind": "ssh", "image": "lab/jupyter:2"},
    "bob-lab": {"user": "bob", "kind": "jupyter", "image": "lab/jupyter:1", "memory": "512m"},
    "a-run": {"user": "alice", "kind": "batch", "gpus": [0], "image": "lab/jupyter:1", "share": True,
              "command": ["python3", "train.py"]},
    "mnist": {"user": "alice", "kind": "serving", "image": "tensorflow/serving:2.9.0",
              "versions": {1: MODEL, 2: NEWER}, "live": 1},
}  # fmt: skip
ARTIFACTS = ("driver", "fabric-manager", "cuda-repository", "cuda-pin", "cudnn", "container-toolkit-key")


def write_site(root: Path, *, port: int, closed: int, key: Path, known_hosts: Path) -> None:
    """A site whose hosts are at ``port`` of 127.0.0.1, those that nobody answers for at the port ``closed``."""
    (root / "inventory/stacks").mkdir(parents=True)
    (root / "tasks.py").write_text("from hostwright.cli.tasks import *  # noqa: F403\n")
    common = {
        "stack": "tensorflow-2.9",
        "ansible_host": "127.0.0.1",
        "ansible_user": pwd.getpwuid(os.getuid()).pw_name,
        "ansible_ssh_private_key_file": str(key),
        "hostwright_known_hosts": str(known_hosts),
        "ansible_timeout": 60,
        "hostwright_bmc": "https://127.0.0.1:9",
        "hostwright_bmc_user": "admin",
        "hostwright_bmc_password": "not-a-password",
    }
    people = {
        "hostwright_roles": ROLES,
        "workspaces_users": {"alice": {"uid": 2001, "keys": [KEY]}, "bob": {"uid": 2002}},
    }
    serves = {"hostwright_roles": [*ROLES, "proxy", "registry"], "registry_at": "lab01:5000", "registry_serve": True}
    children = {
        group: {
            "hosts": {
                name: {"ansible_port": closed if kind == "unreachable" else port} for name, kind in hosts.items()
            },
            "vars": people if group == "people" else {},
        }
        for group, hosts in {**GROUPS, "people": PEOPLE}.items()
    }
    children["people"]["hosts"]["lab01"] |= serves
    (root / "inventory/hosts.yml").write_text(json.dumps({"all": {"vars": common, "children": children}}))
    write_files(root / "files")
    artifacts = {
        name: {"file": f"{name}.bin", "urls": [(root / f"files/{name}.bin").as_uri()], "sha256": None, "size": None}
        for name in ARTIFACTS
    }
    tiny = {"extends": "tensorflow-2.9", "description": "small files, for a mirror", "artifacts": artifacts}
    (root / "inventory/stacks/tiny.yml").write_text(json.dumps(tiny))
    write_people(root)


def write_files(folder: Path) -> None:
    """What there is to be mirrored."""
    folder.mkdir()
    for number, name in enumerate(ARTIFACTS, 1):
        (folder / f"{name}.bin").write_bytes(b"x" * 300_000 * number)


def write_people(root: Path) -> None:
    """The workspaces and models as they are before a verb changes them."""
    hosts = {
        "lab01": {"workspaces_containers": SPACES},
        "lab02": {"workspaces_containers": {"bob-lab": {**SPACES["bob-lab"]}}},
    }
    (root / "inventory/workspaces.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}, sort_keys=False))
    (root / "inventory/registry-authority.yml").unlink(missing_ok=True)
