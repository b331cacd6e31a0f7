"""Declarations of workspaces in a site's files: ``hostwright check`` and the published schemas find mistakes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.unit.cli.test_check import MadeSite, site
from tests.unit.cli.test_schemas import mistakes, validator
from tests.unit.roles.workspaces.spaces import KEY

__all__ = ["site", "validator"]

PEOPLE = f"""
all:
  vars: {{workspaces: {{users: {{alice: {{uid: 2001, keys: [{KEY}]}}}}}}}}
  hosts: {{gpu01: {{workspaces: {{containers: {{alice-lab: {{user: alice, kind: jupyter, gpus: [0]}}}}}}}}}}
"""


@pytest.fixture
def people(site: MadeSite) -> MadeSite:
    """Return a site whose hosts have workspaces, one of them in a separate file."""
    site.write("inventory/group_vars/all.yml", "hostwright_roles: [base, driver, container, workspaces]\n")
    site.write("inventory/workspaces.yml", PEOPLE)
    return site


def test_a_file_that_other_verbs_leave_out_is_a_mistake(people: MadeSite) -> None:
    assert people.check().status == 0
    people.write("inventory/workspaces.yml", PEOPLE.replace("[0]}", "[0]"))
    found = people.check()
    assert found.status == 2
    assert {file for file, _, _ in found.mistakes} == {"inventory/workspaces.yml"}
    assert not any("left out" in note for note in found.notes)


def test_a_workspace_of_somebody_who_is_not_named(people: MadeSite) -> None:
    people.write("inventory/workspaces.yml", PEOPLE.replace("user: alice", "user: alicia"))
    found = people.check()
    assert found.status == 2
    assert any("alicia" in sentence for _, _, sentence in found.mistakes)


@pytest.mark.parametrize("name", ["workspaces", "inventory"])
def test_schemas_accept_workspaces(validator: Callable[[str], Draft202012Validator], name: str) -> None:
    assert mistakes(validator, name, yaml.safe_load(PEOPLE)) == []


@pytest.mark.parametrize(
    "text",
    [
        PEOPLE.replace("user: alice", "usr: alice"),
        PEOPLE.replace("kind: jupyter", "kind: jupiter"),
        "all: {hosts: {gpu01: {base_packages: []}}}",
    ],
)
def test_the_schema_of_workspaces_finds_each_kind_of_mistake(
    validator: Callable[[str], Draft202012Validator], text: str
) -> None:
    assert mistakes(validator, "workspaces", yaml.safe_load(text)) != []
