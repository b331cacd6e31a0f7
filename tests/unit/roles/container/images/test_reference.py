"""Names of images: what distribution/reference takes and refuses, and how each reader of names uses that."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hostwright.standard.roles.container.images.reference import ImageName, familiar, is_tagged, read_image_name
from hostwright.standard.roles.workspaces.declared.forms import Image
from hostwright.standard.roles.workspaces.states.look import WorkspaceFacts

TABLE = Path(__file__).parents[4] / "fixtures" / "workspaces" / "image-names.jsonl"
#: from the tables of the tests of distribution/reference (its commits 4894124 and 00a09fa): what it takes, and as what
NAMES: list[dict[str, Any]] = [json.loads(line) for line in TABLE.read_text().splitlines()]
FACTS = ("registry", "path", "tag", "digest", "repository")
IN_AN_INVENTORY = TypeAdapter(Image)
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


def test_an_inventory_takes_exactly_those_with_a_tag_or_a_digest() -> None:
    for row in NAMES:
        if not row["taken"] or row.get("tag") == "latest":
            tagged = "" if "@" in row["text"] or re.fullmatch("[0-9a-f]{64}", row["text"]) else ":1.0"
            for text in (row["text"], row["text"] + tagged):
                with pytest.raises(ValidationError):
                    IN_AN_INVENTORY.validate_python(text)
        elif row.get("tag") or row.get("digest"):
            assert IN_AN_INVENTORY.validate_python(row["text"]) == row["text"]


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("1a3f5e7d9c1b3a5f7e9d1c3b5a7f9e1d3c5b7a9f1e3d5d7c9b1a3f5e7d9c1b3a", "are an image's ID, not its name"),
        ("-docker.io/docker/docker:1.0", "expected an image"),
        ("192.168.0.1:80:1.0", "is no tag"),
        ("example.com/:1.0", "its path is none"),
        ("example.com/", "its path is none"),
        ("house/Tool:1.0", "its path has capitals"),
        ("a" * 256 + ":1", "longer than a name can be"),
        ("a." * 150 + "example/tool:1", "longer than a name can be"),
        (f"house/tool@sha256:{'F' * 64}", "is no digest"),
        (f"house/tool:{'t' * 129}", "is no tag"),
        ("house/tool:1\n", "is no tag"),
        ("house/töol:1", "its path is none"),
        ("house/tool:١", "is no tag"),
        ("house/tool:1.0 --privileged", "is no tag"),
    ],
)
def test_an_inventory_is_told_what_is_wrong_with_a_name(image: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        IN_AN_INVENTORY.validate_python(image)
    assert sentence in str(caught.value)


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


@pytest.mark.parametrize(
    "declared",
    ["tool:1", "docker.io/library/tool:1", "library/tool:1", "index.docker.io/tool:1", f"docker.io/tool:1@{OF_DOCKER}"],
)
def test_an_image_of_the_host_is_found_by_each_of_its_names(declared: str) -> None:
    look = WorkspaceFacts(images={OF_DOCKER: OF_DOCKER, "tool:1": OF_DOCKER, f"tool@{OF_DOCKER}": OF_DOCKER})
    assert look.image(declared) == OF_DOCKER
    assert look.image("tool:2") == look.image(f"tool:1@sha256:{'0' * 64}") == ""


def test_a_long_text_is_read_in_one_go() -> None:
    """A host may report a name of any length."""
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
