"""Reports a missing Python library, for example if a checkout's Python lacks Hostwright's dependencies."""

from __future__ import annotations

import sys
import traceback
from importlib.util import find_spec
from pathlib import Path

from hostwright.common.errors import BAD_INPUT

_PACKAGE = Path(__file__).resolve().parents[1]


def lacking(error: Exception) -> str:
    """Return a message if ``error`` means that Hostwright lacks a library.

    Empty for other errors, and for imports by a site.
    """
    if not isinstance(error, ModuleNotFoundError):
        return ""
    name = (error.name or "").partition(".")[0]
    if not name or find_spec(name) is not None or not _ours(error):
        return ""
    return _sentence(str(error))


def _ours(error: ImportError) -> bool:
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    importing = [file for file in files if file.is_absolute() and "importlib" not in file.parts]
    return bool(importing) and importing[-1].resolve().is_relative_to(_PACKAGE)


def _sentence(why: str) -> str:
    return (
        f"{sys.executable} lacks a library that Hostwright needs ({why}); activate Hostwright's environment "
        "(. .venv/bin/activate), or run `make setup` in a checkout"
    )


class Lacking(SystemExit):
    """Ends this process after a message about a missing library."""


def require(library: str) -> None:
    """Print a message and raise ``Lacking``, which ends this process, if ``library`` is missing.

    >>> require("sys")
    """
    if find_spec(library) is None:
        print(_sentence(f"No module named {library!r}"), file=sys.stderr)
        raise Lacking(BAD_INPUT)
