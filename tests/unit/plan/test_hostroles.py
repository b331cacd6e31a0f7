"""Which roles a host has: its inventory chooses, its stack names the default; a role that is off is in no view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.audit.judging.judging import audit_probes
from hostwright.common.errors import InputErrors
from hostwright.fleet import Fleet, Member
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RELEASE, Run
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import plan_host
from hostwright.plan.roles.role import discover

DEFAULT = ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container"]


def fleet(folder: Path, **variables: Any) -> Fleet:
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": variables}}}, indent=1))
    return Fleet.load(folder)


def member(folder: Path, *roles: str, **variables: Any) -> Member:
    return fleet(folder, **variables).members("gpu01", roles)[0]


def names(found: Member) -> list[str]:
    return [role.name for role in found.desired.roles]


def test_a_host_that_names_no_roles_has_those_of_its_stack_in_their_order(tmp_path: Path) -> None:
    found = member(tmp_path)
    assert names(found) == DEFAULT
    assert set(found.variables) == set(DEFAULT)
    assert {one.name for one in discover()} - set(DEFAULT) == {"selfaudit"}


def test_a_host_has_the_roles_that_it_names_each_after_what_goes_before_it(tmp_path: Path) -> None:
    found = member(tmp_path, hostwright_roles=["tensorflow", "base", "driver"])
    assert names(found) == ["base", "tensorflow", "driver"]
    assert set(found.variables) == {"base", "driver", "tensorflow"}
    assert found.desired.of_host == ("base", "tensorflow", "driver")
    assert {rules.role for rules in found.desired.rules} == {"driver", "tensorflow"}


def test_on_the_command_line_it_is_one_text(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    found = Fleet.load(tmp_path, settings={"hostwright_roles": "base, container,driver"}).members("gpu01")[0]
    assert names(found) == ["base", "driver", "container"]


def test_roles_that_are_looked_at_are_among_those_of_the_host(tmp_path: Path) -> None:
    found = member(tmp_path, "cuda", "selfaudit")
    assert names(found) == ["cuda"]
    assert found.desired.of_host == tuple(DEFAULT)
    assert found.desired.rules, "also those of the roles that are not looked at"


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"hostwright_roles": ["base", "drver"]},
            r"hosts.yml:\d+:\d+: .*there is no role 'drver'; did you mean 'driver'",
        ),
        ({"hostwright_roles": ["cuda"]}, r"hosts.yml:\d+:\d+: .*the role cuda needs the role base, which is not named"),
        ({"hostwright_roles": []}, "expected a list of roles"),
        ({"hostwright_roles": {"base": True}}, "expected a list of roles"),
        ({"selfaudit_enabled": True}, r"hosts.yml:\d+:\d+: selfaudit.enabled is gone: .*\[base, …, selfaudit\]"),
        ({"selfaudit": {"enabled": False}}, "selfaudit.enabled is gone"),
    ],
)
def test_a_wrong_list_is_an_error_where_it_stands(tmp_path: Path, variables: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputErrors, match=sentence):
        member(tmp_path, **variables)


def test_a_stack_without_the_section_of_a_role_is_refused_for_hosts_that_name_it(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "small.yml").write_text("extends: tensorflow-2.9\nroles: [base, cuda]\ncontainer: null\n")
    assert names(member(tmp_path, stack="small")) == ["base", "cuda"]
    with pytest.raises(InputErrors, match="the stack small has no section 'container', which the role container needs"):
        member(tmp_path, stack="small", hostwright_roles=["base", "driver", "container"])


def test_a_stack_is_refused_for_those_of_its_roles_that_do_not_fit(tmp_path: Path) -> None:
    """CUDA 11.4 does not go with this TensorFlow; a host without TensorFlow does not mind."""
    (tmp_path / "stacks").mkdir()
    text = "extends: tensorflow-2.9\nroles: [base, driver]\ncuda: {version: 11.4.0}\n"
    (tmp_path / "stacks" / "mixed.yml").write_text(text)
    assert names(member(tmp_path, stack="mixed", hostwright_roles=["base", "cuda"])) == ["base", "cuda"]
    with pytest.raises(InputErrors, match=r"is built for CUDA 11\.2, not for 11\.4\.0"):
        member(tmp_path, stack="mixed", hostwright_roles=["base", "cuda", "tensorflow"])


def test_a_role_that_the_record_names_and_the_list_no_longer_does_is_noted(tmp_path: Path) -> None:
    record = renewed(member(tmp_path).desired, {}, Run("run-1"))
    found = member(tmp_path, hostwright_roles=["base", "driver", "cuda"])
    probes = (*audit_probes(found), *audit_probes(member(tmp_path)))
    facts = Facts({**dict.fromkeys(probes, Answer(1, "")), RELEASE: Answer(0, json.dumps(record))})
    notes = [note for note in plan_host(found.desired, facts).notes if "is off now" in note]
    assert [note.split()[2] for note in notes] == ["container", "cudnn", "environment", "tensorflow"]
    assert notes[0].endswith("`invoke remove --roles container` takes it away")
    assert not [note for note in plan_host(member(tmp_path).desired, facts).notes if "is off now" in note]


def test_a_role_that_is_off_can_be_added_to_take_it_away(tmp_path: Path) -> None:
    here = fleet(tmp_path, hostwright_roles=["base", "driver"])
    (found,) = here.members("gpu01", ["selfaudit"])
    assert found.roles == ()
    assert names(here.also(found, ["selfaudit", "base"])) == ["selfaudit"]
