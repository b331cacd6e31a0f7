"""An inventory with everything that Ansible reads in its own way, compared with recorded output of Ansible.

``mixed.json`` names the version of Ansible. ``benchmarks/ansible_answers.py`` recorded it, and
``benchmarks/inventories.py`` compares public inventories in the same way.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.inventory import Inventory, load, select

FIXTURES = Path(__file__).parents[2] / "fixtures" / "inventories"
ANSIBLE = json.loads((FIXTURES / "mixed.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def inventory() -> Inventory:
    return load(FIXTURES / "mixed")


def test_groups_have_ansibles_hosts_in_its_order(inventory: Inventory) -> None:
    ours = {name: list(group.hosts) for name, group in inventory.groups.items()}
    theirs = dict(ANSIBLE["groups"])
    # below the first level of children, Ansible's order is that of a set, which differs from run to run
    assert sorted(ours.pop("all")) == sorted(theirs.pop("all"))
    assert ours == theirs


@pytest.mark.parametrize("host", ANSIBLE["hostvars"])
def test_variables_are_ansibles(inventory: Inventory, host: str) -> None:
    ours: dict[str, Any] = {name: value.value for name, value in inventory.hosts[host].vars.items()}
    assert ours == ANSIBLE["hostvars"][host]


@pytest.mark.parametrize("pattern", ANSIBLE["patterns"])
def test_patterns_choose_ansibles_hosts(inventory: Inventory, pattern: str) -> None:
    ours = {host.name for host in select(inventory, pattern, usable=False)}
    assert ours == set(ANSIBLE["patterns"][pattern])
