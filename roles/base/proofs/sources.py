"""The text of a program that is compiled on a host: one file, with the headers that it includes in their place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

_BEGIN, _END = '#include "', '.h"\n'


def source(module: str, file: str, *others: str) -> str:
    """A file beside a module (its ``__file__``). Each header in quotes is put in its place once: one that lies beside
    the module, else beside one of the others, else one of those here. Raises ``FileNotFoundError`` for a header that is
    in none of these places."""
    return _whole(tuple(Path(name).parent for name in (module, *others, __file__)), file)


@cache
def _whole(folders: tuple[Path, ...], file: str) -> str:
    return "".join(_lines(folders, folders[0] / file, set()))


def _lines(folders: tuple[Path, ...], path: Path, known: set[str]) -> Iterator[str]:
    """The lines of a file, those of its headers among them; ``known`` are the headers that are there already."""
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.startswith(_BEGIN) and line.endswith(_END):
            name = line.removeprefix(_BEGIN).removesuffix('"\n')
            if name not in known:
                known.add(name)
                places = [folder / name for folder in folders]
                yield from _lines(folders, next((place for place in places if place.exists()), places[-1]), known)
        elif line != "#pragma once\n":
            yield line
