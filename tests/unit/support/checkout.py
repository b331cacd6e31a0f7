"""What this checkout has: the roles for people, and what bears their names, may be deleted from it."""

from __future__ import annotations

import json
from typing import Any

from tests.places import PROJECT

FOR_PEOPLE = ("jupyterhub", "proxy", "registry", "serving", "workspaces")
ABSENT = tuple(name for name in FOR_PEOPLE if not (PROJECT / "roles" / name).is_dir())
#: how the names of their verbs, failure rules and pages begin
_BEGINNINGS = {
    "images.rebuild": "workspaces", "jupyter-": "workspaces", "jupyterhub": "jupyterhub", "proxy": "proxy",
    "registry.": "registry", "serve.": "serving", "serving": "serving", "ssh-host-key-changed": "workspaces",
    "ssh-keys-refused": "workspaces", "workspace": "workspaces",
}  # fmt: skip
#: a rule of another role
_OTHERS = ("proxy-refuses",)


def here(name: str) -> bool:
    """Whether the role is in this checkout to which a verb, a failure rule or a page of this name belongs."""
    owners = () if name in _OTHERS else (role for start, role in _BEGINNINGS.items() if name.startswith(start))
    return not any(role in ABSENT for role in owners)


def verbs() -> dict[str, dict[str, list[Any]]]:
    """Every verb with its options: kind, default, whether it stands without a flag. Scripts of users rely on them."""
    recorded = json.loads((PROJECT / "tests/unit/cli/verbs.json").read_text("utf-8"))
    return {verb: options for verb, options in recorded.items() if here(verb)}
