"""The page on reinstallation names every setting, and its sample is one that may be used."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
import yaml

from hostwright.rebuild.install.seeds.reading import read_install, read_reinstall
from hostwright.rebuild.install.seeds.settings import Disk, Install, Network, Reinstall
from tests.unit.support.documents import blocks, text_of
from tests.unit.support.seeds import host

PAGE = "docs/rebuild.md"
SETTINGS = {one.name for kind in (Install, Disk, Network, Reinstall) for one in fields(kind)}


def sample(variable: str) -> dict[str, object]:
    """The variables of the block of the page that gives this one."""
    return next(
        said for block in blocks(PAGE) if block.language == "yaml" and variable in (said := yaml.safe_load(block.text))
    )


@pytest.mark.parametrize("name", [one.name for one in fields(Install)])
def test_every_setting_of_an_installation_has_a_row(name: str) -> None:
    rows = [row.split("|")[1] for row in text_of(PAGE).splitlines() if row.startswith("| `")]
    assert f"`{name}`" in " ".join(rows)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_setting_is_named(name: str) -> None:
    assert re.search(rf"`{name}[`:]", text_of(PAGE))


def test_the_samples_may_be_used() -> None:
    installed = read_install(host(None, name="gpu07", **sample("hostwright_install")))
    assert installed is not None
    assert installed.disk.serial
    assert (installed.path, installed.only_from) == ("gpu07", "10.0.0.7")
    assert read_reinstall(host(None, **sample("hostwright_reinstall"))) is not None
