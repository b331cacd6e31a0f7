"""Seeds for Ubuntu before the schemas of its installers: of 20.04, the first with autoinstall, and of the newest.

No package carries them: they are written out in tests/fixtures/autoinstall.yml, which names its sources. The newest one
can be asked itself instead: name a copy of ``autoinstall-schema.json`` of the repository canonical/subiquity in
HOSTWRIGHT_SUBIQUITY_SCHEMA.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from tests.unit.support.seed_reading import UBUNTU, document
from tests.unit.support.seeds import FIXED, USER_KEY, install

PARTS = yaml.safe_load((Path(__file__).parents[3] / "fixtures" / "autoinstall.yml").read_text())
#: Sections that later installers brought; that of 20.04 passes over them.
LATER = {"updates", "timezone", "shutdown"}


def written_out(sections: dict[str, Any]) -> dict[str, Any]:
    """The schema of a whole seed. Installers take unknown sections in version 1, and pass over them."""
    return {
        "type": "object",
        "required": ["version"],
        "properties": sections,
        "definitions": PARTS["definitions"],
    }


FIRST = written_out(PARTS["first"])
GIVEN = os.environ.get("HOSTWRIGHT_SUBIQUITY_SCHEMA", "")
NEWEST = yaml.safe_load(Path(GIVEN).read_text()) if GIVEN else written_out(PARTS["first"] | PARTS["later"])
SCHEMAS = {"20.04": FIRST, "newest": NEWEST}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_the_schemas_are_schemas(schema: dict[str, Any]) -> None:
    Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("kind", UBUNTU.values(), ids=UBUNTU)
def test_the_installer_of_20_04_takes_a_seed(kind: dict[str, Any]) -> None:
    whole = document(install(**kind))
    assert [error.message for error in Draft7Validator(FIRST).iter_errors(whole)] == []
    # Sections that it does not know it passes over in silence, so they are looked for here.
    assert set(whole) - set(FIRST["properties"]) <= LATER


@pytest.mark.parametrize("kind", UBUNTU.values(), ids=UBUNTU)
def test_autoinstall_is_valid_by_the_installers_own_schema(kind: dict[str, Any]) -> None:
    whole = document(install(**kind))
    assert [error.message for error in Draft7Validator(NEWEST).iter_errors(whole)] == []
    assert set(whole) <= set(NEWEST["properties"])  # version 1 passes over unknown keys, so they are looked for here


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("version",), 2),
        (("identity", "username"), 5),
        (("ssh", "authorized-keys"), USER_KEY),
        (("late-commands",), "poweroff"),
        (("network", "version"), 1),
        (("keyboard", "layout"), ["us"]),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_the_installers_refuse_what_is_wrong(schema: dict[str, Any], path: tuple[str, ...], wrong: object) -> None:
    whole = document(install(network=FIXED))
    inner = whole
    for name in path[:-1]:
        inner = inner[name]
    assert path[-1] in inner
    inner[path[-1]] = wrong
    assert list(Draft7Validator(schema).iter_errors(whole))
