"""The text of a program as it is sent: one file, with what it imports from its common part before it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")


@cache
def program_text(name: str) -> str:
    """The program ``name`` (``dense.py``) of the folder ``programs`` after ``common.py``, importing no file of ours."""
    return _without_imports(PROGRAMS / "common.py", keep_future=True) + _without_imports(PROGRAMS / name)


def _without_imports(file: Path, *, keep_future: bool = False) -> str:
    lines = file.read_text("utf-8").splitlines(keepends=True)
    for node in ast.parse("".join(lines)).body:
        if isinstance(node, ast.ImportFrom) and _left_out(node.module or "", keep_future):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "".join(lines)


def _left_out(module: str, keep_future: bool) -> bool:
    return module.endswith(".programs.common") or (module == "__future__" and not keep_future)
