"""The contents of this checkout: optional roles, and the commands, rules and pages named after them, may be deleted
from it.
"""

from __future__ import annotations

import json
from typing import Any

from tests.places import PROJECT

FOR_PEOPLE = ("jupyterhub", "proxy", "registry", "serving", "workspaces")
ABSENT = tuple(name for name in FOR_PEOPLE if not (PROJECT / "roles" / name).is_dir())
#: prefixes of the names of their commands, failure rules and pages
_BEGINNINGS = {
    "images.rebuild": "workspaces", "jupyter-": "workspaces", "jupyterhub": "jupyterhub", "proxy": "proxy",
    "registry.": "registry", "serve.": "serving", "serving": "serving", "ssh-host-key-changed": "workspaces",
    "ssh-keys-refused": "workspaces", "workspace": "workspaces",
}  # fmt: skip
#: a rule of another role
_OTHERS = ("proxy-refuses",)


def here(name: str) -> bool:
    """Whether this checkout has the role to which a command, failure rule or page of this name belongs."""
    owners = () if name in _OTHERS else (role for start, role in _BEGINNINGS.items() if name.startswith(start))
    return not any(role in ABSENT for role in owners)


def verbs() -> dict[str, dict[str, list[Any]]]:
    """Every command with its options: kind, default, and whether the option is positional. Users' scripts depend on
    them.
    """
    recorded = json.loads((PROJECT / "tests/unit/cli/verbs.json").read_text("utf-8"))
    return {verb: options for verb, options in recorded.items() if here(verb)}
