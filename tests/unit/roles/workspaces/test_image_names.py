"""Image names in an inventory and on a host: accepted names, and the errors of others."""

from __future__ import annotations

import re

import pytest
from pydantic import TypeAdapter, ValidationError

from hostwright.standard.roles.workspaces.declared.forms import Image
from hostwright.standard.roles.workspaces.states.facts import WorkspaceFacts
from tests.unit.roles.container.images.test_reference import NAMES, OF_DOCKER

IN_AN_INVENTORY = TypeAdapter(Image)


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
        ("192.168.0.1:80:1.0", "is not a valid tag"),
        ("example.com/:1.0", "the path is invalid"),
        ("example.com/", "the path is invalid"),
        ("house/Tool:1.0", "the path has uppercase letters"),
        ("a" * 256 + ":1", "longer than 255 characters"),
        ("a." * 150 + "example/tool:1", "longer than 255 characters"),
        (f"house/tool@sha256:{'F' * 64}", "is not a digest"),
        (f"house/tool:{'t' * 129}", "is not a valid tag"),
        ("house/tool:1\n", "is not a valid tag"),
        ("house/töol:1", "the path is invalid"),
        ("house/tool:١", "is not a valid tag"),
        ("house/tool:1.0 --privileged", "is not a valid tag"),
    ],
)
def test_an_inventory_is_told_what_is_wrong_with_a_name(image: str, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        IN_AN_INVENTORY.validate_python(image)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "declared",
    ["tool:1", "docker.io/library/tool:1", "library/tool:1", "index.docker.io/tool:1", f"docker.io/tool:1@{OF_DOCKER}"],
)
def test_an_image_of_the_host_is_found_by_each_of_its_names(declared: str) -> None:
    look = WorkspaceFacts(images={OF_DOCKER: OF_DOCKER, "tool:1": OF_DOCKER, f"tool@{OF_DOCKER}": OF_DOCKER})
    assert look.image(declared) == OF_DOCKER
    assert look.image("tool:2") == look.image(f"tool:1@sha256:{'0' * 64}") == ""
