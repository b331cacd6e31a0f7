"""Tests of a host's roles: the inventory selects them, the stack has the default, reports omit disabled roles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hostwright.apply.host.departure import clean_script
from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.judging import unread
from hostwright.common.errors import InputErrors
from hostwright.common.request import Request
from hostwright.fleet import Fleet, TargetHost
from hostwright.plan.host.newrelease import renewed
from hostwright.plan.host.release import RELEASE, RunStamp
from hostwright.plan.model import Answer, Facts
from hostwright.plan.planning import plan_host
from hostwright.plan.roles.role import discover
from hostwright.plan.stacks.files import artifacts_for_hosts
from hostwright.stack.stack import Artifact
from hostwright.stack.store.artifacts import stand_ins_line

DEFAULT = ["base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container"]


def fleet(folder: Path, **variables: Any) -> Fleet:
    (folder / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": variables}}}, indent=1))
    return Fleet.load(folder)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


def target(folder: Path, *roles: str, **variables: Any) -> TargetHost:
    return fleet(folder, **variables).targets("gpu01", roles)[0]


def names(found: TargetHost) -> list[str]:
    return [role.name for role in found.desired.roles]


def test_host_without_roles_has_its_stacks_in_order(tmp_path: Path) -> None:
    found = target(tmp_path)
    assert names(found) == DEFAULT
    assert set(found.variables) == set(DEFAULT)
    assert {one.name for one in discover()} - set(DEFAULT) >= {"nccl", "selfaudit", "tensorrt"}


def test_named_roles_are_sorted_by_their_order(tmp_path: Path) -> None:
    found = target(tmp_path, hostwright_roles=["tensorflow", "base", "driver"])
    assert names(found) == ["base", "tensorflow", "driver"]
    assert set(found.variables) == {"base", "driver", "tensorflow"}
    assert found.desired.of_host == ("base", "tensorflow", "driver")
    assert {rules.role for rules in found.desired.rules} == {"base", "driver", "tensorflow"}


def test_on_the_command_line_it_is_one_text(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all: {hosts: {gpu01: {}}}")
    found = Fleet.load(tmp_path, Request(var=("hostwright_roles=base, container,driver",))).targets("gpu01")[0]
    assert names(found) == ["base", "driver", "container"]


def test_roles_that_are_looked_at_are_among_those_of_the_host(tmp_path: Path) -> None:
    found = target(tmp_path, "cuda", "selfaudit")
    assert names(found) == ["cuda"]
    assert found.desired.of_host == tuple(DEFAULT)
    assert found.desired.rules, "also those of the roles that are not looked at"


def test_the_rest_of_a_host_are_the_roles_that_are_not_looked_at(tmp_path: Path) -> None:
    assert names(target(tmp_path, "cuda", "selfaudit").rest) == [name for name in DEFAULT if name != "cuda"]
    assert names(target(tmp_path).rest) == []


def names_of(artifacts: Iterable[Artifact]) -> set[str]:
    return {artifact.name for artifact in artifacts}


STAND_INS = "extends: tensorflow-2.9\nartifacts: {driver: {stand_in: true}, cudnn: {stand_in: true}}\n"


def test_the_text_of_a_stand_in_is_beside_its_file_and_in_the_line_of_every_report(tmp_path: Path) -> None:
    said = "repackaged: the files are 550.163.01's"
    write(tmp_path / "stacks/ours.yml", STAND_INS.replace("true", f'"{said}"', 1))
    found = target(tmp_path, stack="ours")
    driver, cudnn = (found.stack.artifact(name).file for name in ("driver", "cudnn"))
    assert set(found.stand_ins) == {f"{driver} ({said})", cudnn}
    line = "lab stack: 2 stand-in files, not the vendor's own: see docs/lab.md"
    assert stand_ins_line(found.stand_ins) == f"{line}; {said}"
    assert stand_ins_line([driver, cudnn]) == line


def test_probes_of_absent_roles_are_not_run(tmp_path: Path) -> None:
    """They are neither stored in the host's cache nor reported by audits."""
    write(tmp_path / "stacks/ours.yml", STAND_INS)
    found = target(tmp_path, "base", stack="ours", hostwright_roles=["base", "cuda", "cudnn"])
    assert found.stand_ins == (found.stack.artifact("cudnn").file,), "also of a role that is not looked at now"
    assert names_of(found.artifacts) == names_of(found.stack.used_by(["cuda", "cudnn"]))
    audited = unread(found, "no answer", datetime.now(UTC))
    assert audited.stand_ins == (found.stack.artifact("cudnn").file,)
    kept = clean_script(found.artifacts).partition("kept=")[2].partition("\n")[0]
    assert str(found.stack.artifact("cudnn").sha256) in kept
    assert str(found.stack.artifact("driver").sha256) not in kept


def test_mirror_brings_what_hosts_with_the_stack_need(tmp_path: Path) -> None:
    write(tmp_path / "stacks/ours.yml", STAND_INS)
    write(tmp_path / "stacks/theirs.yml", "extends: tensorflow-2.9\n")
    few = {"stack": "ours", "hostwright_roles": ["base", "cudnn"]}
    roster = fleet(tmp_path, **few)
    ours, theirs = roster.stack("ours"), roster.stack("theirs")
    assert names_of(artifacts_for_hosts(roster, ours)) == {"cudnn"}
    assert names_of(artifacts_for_hosts(roster, theirs)) == {"cudnn"}, "no host has it yet: as if all had it"
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"gpu01": few, "gpu02": {"stack": "theirs"}}}}))
    roster = Fleet.load(tmp_path)
    assert names_of(artifacts_for_hosts(roster, ours)) == {"cudnn"}
    assert names_of(artifacts_for_hosts(roster, theirs)) == names_of(theirs.used_by(theirs.roles))
    (tmp_path / "hosts.yml").write_text("all: {hosts: {}}")
    assert names_of(artifacts_for_hosts(Fleet.load(tmp_path), theirs)) == names_of(theirs.used_by(theirs.roles))


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"hostwright_roles": ["base", "drver"]},
            r"hosts.yml:\d+:\d+: .*unknown role 'drver'; did you mean 'driver'",
        ),
        (
            {"hostwright_roles": ["cuda"]},
            r"hosts.yml:\d+:\d+: .*the role cuda needs the role base, which is not in the list",
        ),
        ({"hostwright_roles": []}, "expected a list of roles"),
        ({"hostwright_roles": {"base": True}}, "expected a list of roles"),
        ({"selfaudit_enabled": True}, r"hosts.yml:\d+:\d+: selfaudit.enabled is no longer .*\[base, …, selfaudit\]"),
        ({"selfaudit": {"enabled": False}}, "selfaudit.enabled is no longer supported"),
    ],
)
def test_a_wrong_list_is_an_error_where_it_stands(tmp_path: Path, variables: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputErrors, match=sentence):
        target(tmp_path, **variables)


def test_stack_without_a_roles_section_is_refused(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "small.yml").write_text("extends: tensorflow-2.9\nroles: [base, cuda]\ncontainer: null\n")
    assert names(target(tmp_path, stack="small")) == ["base", "cuda"]
    with pytest.raises(InputErrors, match=r"which the role container needs; remove the role"):
        target(tmp_path, stack="small", hostwright_roles=["base", "driver", "container"])


def test_stack_is_refused_for_roles_that_do_not_fit(tmp_path: Path) -> None:
    """CUDA 11.4 does not fit this TensorFlow; a host without TensorFlow is not affected."""
    (tmp_path / "stacks").mkdir()
    text = "extends: tensorflow-2.9\nroles: [base, driver]\ncuda: {version: 11.4.0}\n"
    (tmp_path / "stacks" / "mixed.yml").write_text(text)
    assert names(target(tmp_path, stack="mixed", hostwright_roles=["base", "cuda"])) == ["base", "cuda"]
    with pytest.raises(InputErrors, match=r"is built for CUDA 11\.2, not for 11\.4\.0"):
        target(tmp_path, stack="mixed", hostwright_roles=["base", "cuda", "tensorflow"])


def test_recorded_role_no_longer_chosen_is_noted(tmp_path: Path) -> None:
    record = renewed(target(tmp_path).desired, {}, RunStamp("run-1"))
    found = target(tmp_path, hostwright_roles=["base", "driver", "cuda"])
    probes = (*audit_probes(found), *audit_probes(target(tmp_path)))
    facts = Facts({**dict.fromkeys(probes, Answer(1, "")), RELEASE: Answer(0, json.dumps(record))})
    notes = [note for note in plan_host(found.desired, facts).notes if "is no longer in its list of roles" in note]
    assert [note.split()[2] for note in notes] == ["container", "cudnn", "environment", "tensorflow"]
    assert notes[0].endswith("; to remove it, run `invoke remove --roles container`")
    assert not [
        note for note in plan_host(target(tmp_path).desired, facts).notes if "is no longer in its list of roles" in note
    ]


def test_a_role_that_is_off_can_be_added_to_take_it_away(tmp_path: Path) -> None:
    here = fleet(tmp_path, hostwright_roles=["base", "driver"])
    (found,) = here.targets("gpu01", ["selfaudit"])
    assert found.roles == ()
    assert names(here.also(found, ["selfaudit", "base"])) == ["selfaudit"]
