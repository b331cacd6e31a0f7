"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path

from hostwright.common.errors import InputError

GONE = "the working directory is gone: change to one that exists"
STDOUT = "-"  #: as a file of one of the reports that can go there


def expanded(text: str | Path) -> Path:
    """A path with ``~`` and ``~user`` expanded. With an unknown user it stays as it is, where pathlib would raise
    ``RuntimeError``: the code that opens it then reports a missing file.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111 - see above


def working_directory() -> Path:
    """The working directory. Raises ``InputError`` where somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InputError(GONE) from error


def place_for(text: str, option: str, what: str) -> Path:
    """A path to which ``what`` is written that cannot go to standard output. Raises ``InputError`` where it is named.

    >>> place_for("-", "--out", "a saved plan")
    Traceback (most recent call last):
    hostwright.common.errors.InputError: --out: a saved plan cannot go to standard output: name a place for it
    """
    if text == STDOUT:
        raise InputError(f"{what} cannot go to standard output: name a place for it", option)
    return expanded(text)
