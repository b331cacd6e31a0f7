"""Converts paths as users type them."""

from __future__ import annotations

import os
from pathlib import Path

from hostwright.common.errors import InputError

GONE = "the working directory no longer exists; change to another directory"
STDOUT = "-"  #: file name for standard output


def expanded(text: str | Path) -> Path:
    """Expand ``~`` and ``~user`` in the path ``text``.

    The name of an unknown user is not expanded; pathlib would raise ``RuntimeError`` instead.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111 - see above


def working_directory() -> Path:
    """Return the current working directory. Raises ``InputError`` if the directory has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InputError(GONE) from error


def place_for(text: str, option: str, what: str) -> Path:
    """Return the path ``text`` of an output file, the value of ``option``. Raises ``InputError`` for ``-``.

    ``what`` names the content of the file in the message.

    >>> place_for("-", "--out", "a saved plan")
    Traceback (most recent call last):
    hostwright.common.errors.InputError: --out: a saved plan cannot be written to standard output; name a path
    """
    if text == STDOUT:
        raise InputError(f"{what} cannot be written to standard output; name a path", option)
    return expanded(text)
