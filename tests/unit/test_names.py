"""One name for one thing: no two public classes share a name, and no file is named for holding values."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hostwright

TREE = Path(hostwright.__file__).resolve().parents[1]


def modules() -> list[Path]:
    """The product's own files; the links to the standard roles are other ways to the same ones."""
    found = [*(TREE / "hostwright").rglob("*.py"), *(TREE / "roles").rglob("*.py")]
    return sorted(path for path in found if "standard" not in path.relative_to(TREE).parts)


def test_no_two_public_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in modules():
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(TREE)}:{node.lineno}")
    assert len(places) > 200
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_files_are_named_for_what_they_hold() -> None:
    assert [str(path.relative_to(TREE)) for path in modules() if path.name == "values.py"] == []
