"""Image names that distribution/reference accepts and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hostwright.standard.roles.container.images.reference import ImageName, familiar, is_tagged, read_image_name

TABLE = Path(__file__).parents[4] / "fixtures" / "image-names.jsonl"
#: from the test tables of distribution/reference (commits 4894124 and 00a09fa): accepted names and their parts
NAMES: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]
FACTS = ("registry", "path", "tag", "digest", "repository")
OF_DOCKER = f"sha256:{'f' * 64}"


@pytest.mark.parametrize("row", NAMES, ids=lambda row: row["text"][:60])
def test_names_are_taken_and_refused_as_docker_does(row: dict[str, Any]) -> None:
    if not row["taken"]:
        with pytest.raises(ValueError, match=r"."):
            read_image_name(row["text"])
        return
    name = read_image_name(row["text"])
    told = {fact: row[fact] for fact in FACTS if fact in row}
    assert {fact: getattr(name, fact) for fact in told} == told


def test_the_table_is_whole() -> None:
    assert len(NAMES) > 200
    assert {row["taken"] for row in NAMES} == {True, False}


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("docker.io/library/tool/kit:1", "library/tool/kit:1"),
        ("library/tool:1", "tool:1"),
        ("index.docker.io/house/tool:1", "house/tool:1"),
        ("HOUSE/tool:1", "HOUSE/tool:1"),
        ("[2001:db8::1]:5000/tool:1", "[2001:db8::1]:5000/tool:1"),
        ("do__cker/tool---kit:T_1", "do__cker/tool---kit:T_1"),
    ],
)
def test_a_name_is_read_as_docker_shows_it(written: str, shown: str) -> None:
    assert familiar(written) == shown
    assert is_tagged(shown)


@pytest.mark.parametrize(
    "name",
    ["house./tool:1", "house/tool-:1", "ho..use/tool:1", "house//tool:1", f"house/tool:1@{OF_DOCKER}", "house/tool"],
)
def test_a_name_that_docker_refuses_or_that_has_no_tag_alone(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        familiar(name)
    assert not is_tagged(name)


def test_a_long_text_is_read_in_one_go() -> None:
    """A host may report names of any length."""
    for text in (
        "a-" * 10**6,
        "a." * 10**6 + "/b",
        "A" * 10**6 + "/b",
        "[" + ":" * 10**6,
        "a:" + "t" * 10**6,
        "a/" * 10**6,
    ):
        with pytest.raises(ValueError, match=r"longer|tag|registry|path"):
            read_image_name(text)
    assert read_image_name("tool:1") == ImageName("docker.io", "library/tool", "1")
