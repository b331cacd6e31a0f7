"""The programs of frameworks as they are sent: one file each, for the oldest Python that TensorFlow 2.9 runs on."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from hostwright.standard.roles.base.proofs.sources import python_source
from hostwright.standard.roles.jax import proofs as jax
from hostwright.standard.roles.pytorch import proofs as pytorch
from hostwright.standard.roles.tensorflow import proofs as tensorflow

#: the proofs of each framework, and what its environment has beside the standard library
PACKAGES = {
    tensorflow.__file__: {"numpy", "tensorflow"},
    pytorch.__file__: {"numpy", "torch"},
    jax.__file__: {"numpy", "jax", "jaxlib"},
}
SHARED = {"__init__.py", "common.py"}
PROGRAMS = [
    pytest.param(module, file.name, id=f"{Path(module).parents[1].name}-{file.name}")
    for module in PACKAGES
    for file in sorted(Path(module).with_name("programs").glob("*.py"))
    if file.name not in SHARED
]


@pytest.mark.parametrize(("module", "name"), PROGRAMS)
def test_a_program_is_one_file_of_python_3_7_that_needs_nothing_of_ours(module: str, name: str) -> None:
    text = python_source(module, name)
    tree = ast.parse(text, feature_version=(3, 7))
    modules = {
        module.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names])
    }
    assert modules - PACKAGES[module] <= sys.stdlib_module_names
    assert text.count("from __future__") == 1
    assert text.count("class Lines:") == 1
    assert text.rstrip().endswith("run(main)")


@pytest.mark.parametrize(("module", "name"), PROGRAMS)
def test_no_annotation_is_evaluated(module: str, name: str) -> None:
    """``dict[str, Any]`` is no expression before Python 3.9: it may stand in annotations alone."""
    tree = ast.parse(python_source(module, name), feature_version=(3, 7))
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


@pytest.mark.parametrize("module", PACKAGES, ids=lambda module: Path(module).parents[1].name)
def test_every_program_is_a_proof(module: str) -> None:
    source = ast.parse(Path(module).read_text("utf-8"))
    named = {node.value for node in ast.walk(source) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    programs = {file.name for file in Path(module).with_name("programs").glob("*.py")}
    assert programs - SHARED <= named
