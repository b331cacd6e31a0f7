"""The hosts of the pictures: their names, what becomes of each, and the site that names them."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Literal

Kind = Literal["as desired", "changed", "pending", "failed", "unreachable", "locked"]

#: group → host → what becomes of it
GROUPS: dict[str, dict[str, Kind]] = {
    "green": dict.fromkeys(("gpu01", "gpu02", "gpu03", "gpu04"), "as desired"),
    "bare": {"ux01": "changed", "ux02": "changed", "ux03": "pending"},
    "broken": {"train01": "changed", "train02": "failed", "train03": "as desired"},
    "silent": {"edge01": "as desired", "edge02": "unreachable"},
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
KINDS: dict[str, Kind] = {name: kind for group in GROUPS.values() for name, kind in group.items()}


def write_site(root: Path, *, port: int, closed: int, key: Path, known_hosts: Path) -> None:
    """A site whose hosts are at ``port`` of 127.0.0.1, those that nobody answers for at the port ``closed``."""
    (root / "inventory").mkdir(parents=True)
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
    children = {
        group: {
            "hosts": {name: {"ansible_port": closed if kind == "unreachable" else port} for name, kind in hosts.items()}
        }
        for group, hosts in GROUPS.items()
    }
    (root / "inventory/hosts.yml").write_text(json.dumps({"all": {"vars": common, "children": children}}))
