"""Tests of files that states name but stacks do not: for which hosts they are mirrored, and where they are omitted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from hostwright.apply.journal.redaction import Redactor
from hostwright.audit.history import FactStore
from hostwright.common.errors import ArtifactError, InputError
from hostwright.fleet import Fleet
from hostwright.plan.host.hostfacts import with_python
from hostwright.plan.model import Facts
from hostwright.plan.stacks.files import files_of_roles, mirror
from hostwright.stack.stack import RoleFile
from hostwright.stack.store import mirroring
from tests.unit.stack.test_artifacts import Quiet

MIRRORED = {"tensorflow_wheels_from": "mirror"}


def fleet(folder: Path, hosts: dict[str, dict[str, object]], **variables: object) -> Fleet:
    (folder / "stacks").mkdir(parents=True, exist_ok=True)
    inventory = {"all": {"hosts": hosts, "vars": {"hostwright_roles": ["base", "tensorflow"], **variables}}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    return Fleet.load(folder)


def pythons(files: tuple[RoleFile, ...]) -> set[str]:
    """The Python versions of the TensorFlow wheels."""
    return {file.name.rpartition("-")[2] for file in files if file.name.startswith("tensorflow-2.")}


def nothing_seen(_host: str) -> Facts | None:
    return None


def test_wheels_are_those_of_the_python_that_was_seen_on_each_host(tmp_path: Path) -> None:
    roster = fleet(tmp_path, {"gpu01": {}, "gpu02": {}, "gpu03": {"tensorflow_wheels_from": "index"}}, **MIRRORED)
    seen = {"gpu01": with_python("3.9"), "gpu02": with_python("3.8"), "gpu03": with_python("3.10")}
    stack = roster.stack("tensorflow-2.9")
    assert pythons(files_of_roles(roster, stack, seen.get)) == {"cp39", "cp38"}
    seen["gpu02"] = with_python("3.13")  # its plan refuses the version, and no other host waits for it
    assert pythons(files_of_roles(roster, stack, seen.get)) == {"cp39"}


def test_a_host_that_no_audit_saw_gets_those_of_all_pythons_of_its_stack(tmp_path: Path) -> None:
    roster = fleet(tmp_path, {"gpu01": {}}, **MIRRORED)
    found = files_of_roles(roster, roster.stack("tensorflow-2.9"), nothing_seen)
    assert pythons(found) == {"cp38", "cp39", "cp310", "cp37m"}


def test_a_stack_that_no_host_has_yet_is_looked_at_as_if_all_had_it(tmp_path: Path) -> None:
    roster = fleet(tmp_path, {"gpu01": {}}, **MIRRORED)
    found = files_of_roles(roster, roster.stack("tensorflow-2.10"), lambda _: with_python("3.9"))
    assert "tensorflow-2.10.1-cp39-cp39" in {file.name for file in found}


def test_no_wheel_is_mirrored_where_nobody_asked_for_it(tmp_path: Path) -> None:
    roster = fleet(tmp_path, {"gpu01": {}})
    assert files_of_roles(roster, roster.stack("tensorflow-2.9"), nothing_seen) == ()
    (target,) = roster.targets("gpu01")
    assert target.desired.stack is target.stack


@pytest.mark.parametrize("setting", ["mirror", "index"])
def test_a_python_that_no_host_takes_wheels_for_is_named_and_nothing_comes(tmp_path: Path, setting: str) -> None:
    roster = fleet(tmp_path, {"gpu01": {}}, tensorflow_wheels_from=setting)
    python = {"mirror": "3.13", "index": "3.9"}[setting]
    with pytest.raises(InputError, match=f"no host needs files for Python {python}"):
        mirror(roster, "", None, None, seen=nothing_seen, pythons=[python], progress=Quiet())


def test_a_pin_without_a_known_wheel_is_named_before_anything_comes(tmp_path: Path) -> None:
    roster = fleet(tmp_path, {"gpu01": {}}, stack="own", **MIRRORED)
    pins = "numpy==1.26.4\nprotobuf==3.19.6\nhouse-tools==1.0\n"
    (tmp_path / "stacks/pins.txt").write_text(pins)
    own = {"extends": "tensorflow-2.9", "tensorflow": {"pythons": ["3.9"], "constraints": {"3.9": "pins.txt"}}}
    (tmp_path / "stacks/own.yml").write_text(yaml.safe_dump(own))
    with pytest.raises(ArtifactError, match=r"the mirror has no wheel of house-tools 1\.0 for Python 3\.9, "):
        mirror(roster, "", None, None, seen=nothing_seen, progress=Quiet())


def test_files_of_roles_are_delivered_and_are_no_part_of_the_stack(tmp_path: Path) -> None:
    """The record on a host, and the stacks stored on this machine, do not change with the setting."""
    mirrored = fleet(tmp_path / "one", {"gpu01": {}}, **MIRRORED).targets("gpu01")[0]
    other = fleet(tmp_path / "two", {"gpu01": {}}).targets("gpu01")[0]
    name = "numpy-1.26.4-cp39-cp39"
    assert name in mirrored.desired.stack.artifacts and name not in other.desired.stack.artifacts
    before = {artifact.name for artifact in mirrored.files_for(with_python("3.9"))}  # available for a rebuild
    assert name in before and "numpy-1.24.4-cp38-cp38" not in before
    assert mirrored.files_for(None) == mirrored.artifacts == other.artifacts
    assert mirrored.desired.stack.digest() == other.desired.stack.digest() == mirrored.stack.digest()
    assert mirrored.desired.stack.model_dump() == other.desired.stack.model_dump()


def test_the_pythons_of_hosts_are_those_that_their_last_audit_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    roster = fleet(tmp_path / "inventory", {"gpu01": {}}, **MIRRORED)
    facts = FactStore(tmp_path / "state")
    facts.keep(roster.path, "gpu01", datetime.now(UTC), with_python("3.8"), Redactor(()))
    brought: list[str] = []
    monkeypatch.setattr(mirroring, "mirror", lambda files, *_, **__: brought.extend(file.name for file in files) or [])
    roster.mirror(progress=Quiet())
    assert [name for name in brought if name.startswith("tensorflow-2")] == ["tensorflow-2.9.0-cp38-cp38"]
    brought.clear()
    roster.mirror(pythons=["3.9", "3.10"], progress=Quiet())  # explicit ones take precedence
    named = ["tensorflow-2.9.0-cp39-cp39", "tensorflow-2.9.0-cp310-cp310"]
    assert [name for name in brought if name.startswith("tensorflow-2")] == named
