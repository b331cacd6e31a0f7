"""What the plain commands need to reach the hosts: key pair, known_hosts, and an inventory in Ansible's dialect."""

from __future__ import annotations

from typing import Any

import yaml

from lab.config import USER, Lab, Machine
from lab.programs import run
from lab.records import HostRecord, give_to_user, read_records, write_atomically


def ensure_key(lab: Lab) -> None:
    """Make the key that opens every host of the lab, once."""
    directory = lab.private_key.parent
    directory.mkdir(exist_ok=True)
    if not lab.private_key.with_suffix(".pub").exists():
        lab.private_key.unlink(missing_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"hostwright-{lab.name}", "-f", lab.private_key])
    for path in (directory, lab.private_key, lab.private_key.with_suffix(".pub")):
        give_to_user(path)


def publish(lab: Lab) -> None:
    """Write known_hosts and the inventory of the hosts that the lab has now."""
    records = read_records(lab)
    lines = [f"{Machine(lab, name, record.index).address},{name} {_key(record)}\n" for name, record in records.items()]
    write_atomically(lab.known_hosts, "".join(lines))
    lab.inventory.parent.mkdir(exist_ok=True)
    header = "# Written by `lab up`; removed by `lab down`. Not for editing.\n"
    write_atomically(lab.inventory, header + yaml.safe_dump(inventory(lab, records), sort_keys=False))
    for path in (lab.known_hosts, lab.inventory):
        give_to_user(path)


def inventory(lab: Lab, records: dict[str, HostRecord]) -> dict[str, Any]:
    """Return the inventory as the value that the file holds."""
    hosts = {name: _variables(lab, record) for name, record in records.items()}
    common = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(lab.private_key),
        "hostwright_known_hosts": str(lab.known_hosts),
        "stack": "lab",
    }
    return {"lab": {"hosts": hosts, "vars": common}}


def _variables(lab: Lab, record: HostRecord) -> dict[str, Any]:
    return {"ansible_host": str(Machine(lab, record.name, record.index).address)}


def _key(record: HostRecord) -> str:
    return " ".join(record.host_key.split()[:2])
