"""An inventory of our own with everything in it that Ansible reads in a way of its own, beside Ansible's answers.

They were recorded with the version that ``mixed.json`` names, by ``benchmarks/ansible_answers.py``, which
``benchmarks/inventories.py`` also puts to public inventories.
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
    # Ansible's order beyond the first level of children is that of a set: it differs from one run to the next
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
