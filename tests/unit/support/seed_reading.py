"""Parses the documents of a seed like the installers."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hostwright.rebuild.install.seeds.rendering import Seed, render_seed
from hostwright.rebuild.install.seeds.settings import Install
from tests.unit.support.seeds import KEYS, URL, kinds

PRIVATE = KEYS.private.reveal()
UBUNTU, DEBIAN = kinds("ubuntu"), kinds("debian")
LINE = re.compile(
    r"(d-i|tasksel|popularity-contest) ([a-z0-9/_-]+) (string|select|multiselect|boolean|password|note)( .*)?"
)


def seed(wanted: Install) -> Seed:
    return render_seed(wanted, host="gpu07.example", keys=KEYS, url=URL)


def document(wanted: Install) -> Any:
    text = seed(wanted).files["user-data"].decode()
    assert text.startswith("#cloud-config\n")
    whole = yaml.safe_load(text)
    assert set(whole) == {"autoinstall"}
    return whole["autoinstall"]


def answers(wanted: Install) -> dict[str, str]:
    """Parse a preseed file like the installer: one question per line."""
    found = {}
    for line in seed(wanted).files["preseed.cfg"].decode().splitlines():
        if line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            assert match[2] not in found
            found[match[2]] = (match[4] or " ")[1:]
    return found
