"""Source text of a proof's program as one file, with its headers or modules included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_BEGIN, _END = '#include "', '.h"\n'
#: prefix and middle part of the full names of modules that a program for hosts may import
_ROLES, _SHARED = "hostwright.standard.roles.", ".proofs.programs."


def source(module: str, file: str, *others: str) -> str:
    """Return the C file ``file`` beside ``module`` (a ``__file__``), with each quoted header included once.

    Headers are searched beside ``module``, ``others`` and this file. Raises ``FileNotFoundError`` for a missing header.
    """
    return _whole(tuple(Path(name).parent for name in (module, *others, __file__)), file)


@cache
def _whole(folders: tuple[Path, ...], file: str) -> str:
    return "".join(_lines(folders, folders[0] / file, set()))


def _lines(folders: tuple[Path, ...], path: Path, known: set[str]) -> Iterator[str]:
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.startswith(_BEGIN) and line.endswith(_END):
            name = line.removeprefix(_BEGIN).removesuffix('"\n')
            if name not in known:
                known.add(name)
                places = [folder / name for folder in folders]
                yield from _lines(folders, next((place for place in places if place.exists()), places[-1]), known)
        elif line != "#pragma once\n":
            yield line


@cache
def python_source(module: str, file: str) -> str:
    """Return a Python program of the folder ``programs`` beside ``module`` (a ``__file__``), as one file.

    Imported modules of the folders ``proofs/programs`` of roles are included before the program.
    """
    return "from __future__ import annotations\n" + "".join(_parts(Path(module).parent / "programs" / file, set()))


def _parts(path: Path, known: set[Path]) -> Iterator[str]:
    known.add(path)
    lines = path.read_text("utf-8").splitlines(keepends=True)
    for node in ast.parse("".join(lines)).body:
        name = node.module or "" if isinstance(node, ast.ImportFrom) else ""
        if name == "__future__" or _SHARED in name:
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        if _SHARED in name:
            shared = Path(__file__).parents[2].joinpath(*name.removeprefix(_ROLES).split(".")).with_suffix(".py")
            if shared not in known:
                yield from _parts(shared, known)
    yield "".join(lines)
