"""The schemas of files that people write: they accept every file in Hostwright, and find each kind of mistake."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from hostwright.cli.shell.reference import schemas
from hostwright.cli.tasks import site as verbs
from hostwright.cli.tasks.begin import init
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.plan.roles.role import discover
from tests.places import PROJECT

WRITTEN = schemas.written(discover())
STACKS = sorted(path for path in (PROJECT / "inventory/stacks").glob("*.yml") if not path.name.startswith("lab"))


@pytest.fixture(scope="module")
def validator() -> Callable[[str], Draft202012Validator]:
    made = {name: make() for name, make in WRITTEN.items()}
    for schema in made.values():
        Draft202012Validator.check_schema(schema)
    return lambda name: Draft202012Validator(made[name])


Validator = Callable[[str], Draft202012Validator]


def mistakes(validator: Validator, name: str, data: Any) -> list[str]:
    return [f"{list(error.absolute_path)}: {error.message[:200]}" for error in validator(name).iter_errors(data)]


@pytest.mark.parametrize("file", STACKS, ids=lambda file: file.stem)
def test_every_shipped_stack_is_accepted(validator: Validator, file: Path) -> None:
    assert mistakes(validator, "stack", yaml.safe_load(file.read_text("utf-8"))) == []


def test_the_shipped_inventory_is_accepted(validator: Validator) -> None:
    assert mistakes(validator, "inventory", yaml.safe_load((PROJECT / "inventory/hosts.yml").read_text())) == []
    assert (
        mistakes(validator, "variables", yaml.safe_load((PROJECT / "inventory/group_vars/all.yml").read_text())) == []
    )


def test_a_new_site_leads_editors_to_its_schemas_and_is_accepted(validator: Validator, tmp_path: Path) -> None:
    assert init(Request(), str(tmp_path / "ours")) == 0
    led = {}
    for file in (tmp_path / "ours/inventory").rglob("*.yml"):
        text = file.read_text("utf-8")
        line = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
        assert line is not None, file
        schema = (file.parent / line[1]).resolve()
        led[file.name] = schema.name
        commented = "".join(re.findall(r"^# ?((?:all:|  | *\w+:).*\n)", text.partition("\n#\n")[2], re.MULTILINE))
        for data in (yaml.safe_load(text), yaml.safe_load(commented) if file.name == "hosts.yml" else None):
            errors = Draft202012Validator(json.loads(schema.read_text("utf-8"))).iter_errors(data)
            assert [error.message for error in errors] == []
    assert led == {"hosts.yml": "inventory.json", "all.yml": "variables.json"}
    with pytest.raises(InputError, match="already exist"):
        init(Request(), str(tmp_path / "ours"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("variables", "container: {default_runtime: true, cgroup_drivr: x}"),
        ("variables", "container: {default_runtime: maybe}"),
        ("variables", "container_default_runtime: [1]"),
        ("variables", "hostwright_gpu: 4"),
        ("variables", "hostwright_install: {serv: x}"),
        ("variables", "[gpu01]"),
        ("inventory", "all: {host: {gpu01: {}}}"),
        ("inventory", "all: {hosts: [gpu01]}"),
        ("inventory", "all: {hosts: {gpu01: {hostwright_gpu: 4}}}"),
        ("inventory", "all: {children: {rack3: {vars: {container_default_runtime: maybe}}}}"),
        ("stack", "roles: [base]\ndrivers: {}"),
        ("stack", "driver: {version: '470.182.03'}"),
        ("stack", "extends: tensorflow-2.9\ndriver: {version: 470.182}"),
        ("stack", "extends: tensorflow-2.9\ndriver: {versio: '470.182.03'}"),
        ("stack", "extends: tensorflow-2.9\nartifacts: {driver: {sha256: abc}}"),
        ("stack", "extends: tensorflow-2.9\ncuda: {components: {cuda-nvcc-11-2: newest}}"),
    ],
)
def test_each_kind_of_mistake_is_found(validator: Validator, name: str, text: str) -> None:
    assert mistakes(validator, name, yaml.safe_load(text)) != []


@pytest.mark.parametrize(
    "text",
    [
        '[options]\nmax-fial = "10%"',
        "[options]\nyes = true",
        '[options]\ndrain = "yes"',
        "[option]\ndrain = true",
        '[site]\nhost = "@gpu"',
        "[site]\nhosts = 1",
    ],
)
def test_each_kind_of_mistake_in_settings_is_found(validator: Validator, text: str) -> None:
    assert mistakes(validator, "settings", tomllib.loads(text)) != []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("variables", "container: {default_runtime: 'yes'}"),
        ("variables", "container_default_runtime: '{{ wanted }}'"),
        ("variables", "container: {image: house/tool}"),  # of another tool
        ("variables", "environment: production"),
        ("variables", "mine: 1\nhostwright_bmc_user: root\nhostwright_gpus: '4'"),
        ("stack", "extends: tensorflow-2.9\ndriver: {version: '470.256.02'}\nartifacts: {driver: null}"),
    ],
)
def test_what_hostwright_reads_is_accepted(validator: Validator, name: str, text: str) -> None:
    assert mistakes(validator, name, yaml.safe_load(text)) == []


def test_settings_of_the_site_are_accepted(validator: Validator) -> None:
    text = '[site]\nhosts = "@gpu,!mgmt01"\nstate = "/srv/hostwright"'
    assert mistakes(validator, "settings", tomllib.loads(text)) == []


def test_settings_of_the_documents_are_accepted(validator: Validator) -> None:
    texts = re.findall(r"```toml\n# hostwright.toml\n(.*?)```", (PROJECT / "docs/settings.md").read_text(), re.DOTALL)
    assert [mistakes(validator, "settings", tomllib.loads(text)) for text in texts] == [[], [], []]


def test_the_verb_prints_one_lists_all_and_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert verbs.schema(Request(), "stack") == 0
    assert json.loads(capsys.readouterr().out) == WRITTEN["stack"]()
    assert verbs.schema(Request(), "json/plan") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((PROJECT / "docs/schemas/look/plan.json").read_text())
    assert verbs.schema(Request(), "") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in (*WRITTEN, *schemas.printed()))
    with pytest.raises(InputError, match="did you mean 'stack'"):
        verbs.schema(Request(), "stak")


def test_written_again_they_know_the_roles_of_the_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(Request(), str(tmp_path / "ours"))
    role = tmp_path / "ours/roles/motd"
    role.mkdir()
    (role / "__init__.py").write_text(
        "from dataclasses import dataclass\nfrom hostwright.plan.roles.role import role\n\n\n@dataclass(frozen=True)\n"
        'class Motd:\n    text: str = ""  #: shown after login\n\n\n@role()\ndef motd(v: Motd):\n    """A text."""\n'
        "    yield from ()\n"
    )
    monkeypatch.setenv("HOSTWRIGHT_SITE", str(tmp_path / "ours"))
    assert verbs.schema(Request(), "", write=True) == 0
    schema = json.loads((tmp_path / "ours/.schemas/variables.json").read_text("utf-8"))
    assert schema["properties"]["motd_text"] == {"description": "shown after login", "type": "string"}
