"""An environment that lacks a library of Hostwright's: a checkout that is run by another Python than its own."""

from __future__ import annotations

import sys
import traceback
from importlib.util import find_spec
from pathlib import Path

from hostwright.common.errors import BAD_INPUT

_PACKAGE = Path(__file__).resolve().parents[1]


def lacking(error: Exception) -> str:
    """The sentence for a library that Hostwright needs and this environment lacks; empty for what a site imports, and
    for any other error."""
    if not isinstance(error, ModuleNotFoundError):
        return ""
    name = (error.name or "").partition(".")[0]
    if not name or find_spec(name) is not None or not _ours(error):
        return ""
    return _sentence(str(error))


def _ours(error: ImportError) -> bool:
    """Whether it is Hostwright that imports it."""
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    importing = [file for file in files if file.is_absolute() and "importlib" not in file.parts]
    return bool(importing) and importing[-1].resolve().is_relative_to(_PACKAGE)


def _sentence(why: str) -> str:
    return (
        f"{sys.executable} lacks a library that Hostwright needs ({why}): activate the environment that has it "
        "(. .venv/bin/activate), or make one: `make setup` in a checkout"
    )


class Lacking(SystemExit):
    """Ends this process, which lacks a library; a sentence has said so."""


def require(library: str) -> None:
    """End this process with a sentence where a library is missing. Raises ``Lacking``.

    >>> require("sys")
    """
    if find_spec(library) is None:
        print(_sentence(f"No module named {library!r}"), file=sys.stderr)
        raise Lacking(BAD_INPUT)
