"""The pages of verbs and variables match the code, and are complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields

import pytest

from hostwright.cli.shell.reference import variables
from hostwright.inventory.binding import KNOWN, OURS, SHARED
from hostwright.plan.roles.role import discover
from hostwright.rebuild.bmc import settings as bmc
from tests.places import PROJECT
from tests.unit.support.checkout import verbs
from tests.unit.support.documents import text_of

VERBS, VARIABLES = "docs/reference/verbs.md", "docs/reference/variables.md"
COMMAND = "_password_command"

#: runs in its own process, because Invoke removes a task's help texts when it creates options
WRITTEN = "import json; from hostwright.cli.shell.reference.__main__ import pages; print(json.dumps(pages()))"


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOSTWRIGHT_")}
    done = subprocess.run([sys.executable, "-c", WRITTEN], cwd=PROJECT, env=env, capture_output=True, check=True)
    pages: dict[str, str] = json.loads(done.stdout)
    return pages


@pytest.mark.parametrize("page", [VERBS, VARIABLES])
def test_the_committed_page_is_what_the_code_says(page: str, written: dict[str, str]) -> None:
    assert text_of(page) == written[page], "run python -m hostwright.cli.shell.reference"


def test_every_option_of_every_verb_is_on_the_page() -> None:
    sections = dict(re.findall(r"^### `([\w.]+)`\n(.*?)(?=^##)", text_of(VERBS), re.MULTILINE | re.DOTALL))
    short = {"audit.fleet": "audit", "runs.list": "runs"}
    missing = [
        (verb, name)
        for verb, some in verbs().items()
        for name in (each.partition("/")[0] for each, (_, _, *place) in some.items() if not place)
        if not verb.startswith("lab.")
        and f"`--{name.strip('_').replace('_', '-')}" not in sections[short.get(verb, verb)]
    ]
    assert missing == []


def test_every_variable_of_every_role_is_on_the_page_with_its_meaning() -> None:
    page = text_of(VARIABLES)
    for role in discover():
        for one in fields(role.variables):
            (row,) = re.findall(rf"^\| `{role.name}_{one.name}` \|.*$", page, re.MULTILINE)
            assert not row.endswith("|  |"), f"{role.name}_{one.name} has no meaning"


def test_every_variable_of_no_role_is_on_the_page() -> None:
    listed = {name for rows in variables.OWN.values() for name in rows}
    known = {*(f"{OURS}{name}" for name in KNOWN), *SHARED, *(name for name in bmc.NAMES if not name.endswith(COMMAND))}
    assert listed == known


def test_an_option_that_many_verbs_share_is_explained_once() -> None:
    page = text_of(VERBS)
    assert page.count("| `--accept-new` |") == 1
    assert "`--accept-new`, `--ask-become-pass`" in page
    assert page.count("| `--check` | only show the plan (the same as `invoke plan`) |") == 1, (
        "what differs is said there"
    )
