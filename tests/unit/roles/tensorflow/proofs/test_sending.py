"""The programs as they are sent: one file each, for the oldest Python that TensorFlow 2.9 has wheels for."""

from __future__ import annotations

import ast
import sys

import pytest

from hostwright.standard.roles.tensorflow import proofs
from hostwright.standard.roles.tensorflow.proofs import PROGRAMS, program_text

NAMES = sorted(file.name for file in PROGRAMS.glob("*.py") if file.name not in {"__init__.py", "common.py"})
#: what the environment has beside the standard library
PACKAGES = {"numpy", "tensorflow"}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_one_file_of_python_3_7_that_needs_nothing_of_ours(name: str) -> None:
    text = program_text(name)
    tree = ast.parse(text, feature_version=(3, 7))
    modules = {
        module.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert modules - PACKAGES <= sys.stdlib_module_names
    assert text.count("from __future__") == 1
    assert text.rstrip().endswith("run(main)")


@pytest.mark.parametrize("name", NAMES)
def test_no_annotation_is_evaluated(name: str) -> None:
    """``dict[str, Any]`` is no expression before Python 3.9: it may stand in annotations alone."""
    tree = ast.parse(program_text(name), feature_version=(3, 7))
    annotations = {
        id(part)
        for node in ast.walk(tree)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if annotation is not None
        for part in ast.walk(annotation)
    }
    generic = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"dict", "list", "tuple", "set", "type"}
        and id(node) not in annotations
    ]
    assert generic == []


def test_every_program_is_a_proof() -> None:
    source = ast.parse((PROGRAMS.parent / "__init__.py").read_text("utf-8"))
    named = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert set(NAMES) <= named
    assert proofs.LAYER == "tensorflow"
