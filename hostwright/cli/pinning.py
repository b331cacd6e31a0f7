"""Parses the options of the verb ``pins``."""

from __future__ import annotations

import re
from pathlib import Path

from hostwright.common.errors import InputError, Mistakes
from hostwright.common.text import printable
from hostwright.common.userpaths import place_for


def written_stem(out: str) -> Path | None:
    """Return the common path prefix of the output files. ``None`` if ``out`` is empty; constraints are then printed.

    Raises ``InputError`` if the directory does not exist.
    """
    stem = place_for(out, "--out", "several constraints files") if out else None
    if stem and not stem.absolute().parent.is_dir():
        raise InputError(f"{stem.parent} is not a directory; create it first", "--out")
    return stem


def check_pins(requirements: tuple[str, ...], pythons: tuple[str, ...], glibc: str) -> None:
    """Raise ``InputErrors`` with every mistake in the options of ``pins``."""
    values = {
        "--requirement": (requirements or ("",), _is_requirement, "a requirement such as numpy==2.4.1"),
        "--python": (pythons or ("",), lambda text: re.fullmatch(r"3\.[0-9]{1,2}", text), "a version such as 3.12"),
        "--glibc": ((glibc,), lambda text: re.fullmatch(r"2\.[0-9]{1,2}", text), "a version such as 2.28"),
    }
    mistakes = Mistakes()
    for option, (texts, fits, expected) in values.items():
        for text in texts:
            with mistakes:
                if not fits(text):
                    raise InputError(f"found {printable(text) or 'nothing'}, expected {expected}", option)
    mistakes.refuse()


def _is_requirement(text: str) -> bool:
    """Return whether ``text`` is a valid requirement without a URL, because a URL would be written to the
    output file.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text).url is None
    except InvalidRequirement:
        return False
