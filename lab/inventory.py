"""What the ordinary commands need to reach the hosts: key pair, known_hosts, and an inventory in Ansible's format."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import yaml

from hostwright.common.quoting import sh
from lab.bmc.credentials import Credentials
from lab.config import CHECKOUT, DEFAULT_NAME, USER, Lab, Machine
from lab.programs import run
from lab.records import HostRecord, give_to_user, read_records, write_atomically
from lab.stack import VARIANTS


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
    """Write known_hosts and the inventory of the lab's present hosts."""
    records = read_records(lab)
    have = lab.known_hosts.read_text().splitlines() if lab.known_hosts.exists() else []
    write_atomically(lab.known_hosts, "".join(f"{line}\n" for line in known_hosts(lab, records, have)))
    lab.inventory.parent.mkdir(exist_ok=True)
    header = "# Written by `lab up`; removed by `lab down`. Not for editing.\n"
    write_atomically(lab.inventory, header + yaml.safe_dump(inventory(lab, records), sort_keys=False))
    for path in (lab.known_hosts, lab.inventory):
        give_to_user(path)


def known_hosts(lab: Lab, records: dict[str, HostRecord], have: Iterable[str]) -> list[str]:
    """Return the lines of known_hosts; ``have`` are its present lines.

    The lines of a host that was installed from a seed are kept: the lab did not make that host's key.
    """
    lines, others = [], set()
    for name, record in records.items():
        address = str(Machine(lab, name, record.index).address)
        if record.seeded:
            others |= {name, address}
        else:
            lines.append(f"{address},{name} {_key(record)}")
    return lines + [line for line in have if others & _named(line)]


def _named(line: str) -> set[str]:
    """Return the names that a line of known_hosts is for; a marker such as ``@revoked`` may precede them."""
    words = line.split()
    first = 1 if words and words[0].startswith("@") else 0
    return set(words[first].split(",")) if len(words) > first else set()


def inventory(lab: Lab, records: dict[str, HostRecord]) -> dict[str, Any]:
    """Return the inventory as the value that the file holds."""
    hosts = {name: _variables(lab, record) for name, record in records.items()}
    common = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(lab.private_key),
        "hostwright_known_hosts": str(lab.known_hosts),
        "stack": "lab",
    }
    if lab.bmc.is_dir():
        common |= _bmc(lab)
    return {"lab": {"hosts": hosts, "vars": common}}


def _variables(lab: Lab, record: HostRecord) -> dict[str, Any]:
    variables = {"ansible_host": str(Machine(lab, record.name, record.index).address)}
    ends = (VARIANTS.get(record.options["distro"]), record.options.get("real") and f"real-{record.options['real']}")
    if any(ends):
        variables["stack"] = "-".join(("lab", *filter(None, ends)))
    if not lab.bmc.is_dir():
        return variables
    return {
        **variables,
        "hostwright_bmc_system": record.name,
        "hostwright_bmc_console": _console(lab, record.name),
        "hostwright_host_keys": _command(lab, "host-keys", record.name),
    }


def _bmc(lab: Lab) -> dict[str, str]:
    """Return the variables that the BMCs of all hosts share: one endpoint serves them."""
    known = Credentials.read(lab)
    return {
        "hostwright_bmc": lab.bmc_url,
        "hostwright_bmc_user": known.user,
        "hostwright_bmc_password_command": sh("cat %s", known.password_file),
        "hostwright_bmc_ca": str(known.ca),
    }


def _console(lab: Lab, host: str) -> str:
    """Return the command that shows a host's console; Invoke's verb knows only one lab."""
    return sh("invoke lab.console --hosts %s", host) if lab.name == DEFAULT_NAME else _command(lab, "console", host)


def _command(lab: Lab, verb: str, host: str) -> str:
    """Return the shell command of a verb of the lab, for use in any directory."""
    place = sh("cd %s && HOSTWRIGHT_LAB_STATE=%s ", CHECKOUT, lab.root)
    return place + sh("%s -m lab %s --name %s --hosts %s", sys.executable, verb, lab.name, host)


def _key(record: HostRecord) -> str:
    return " ".join(record.host_key.split()[:2])
