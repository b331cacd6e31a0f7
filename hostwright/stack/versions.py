"""Parses and compares versions of software for compatibility rules."""

from __future__ import annotations

import re
from functools import cache

from packaging.version import Version


@cache
def version(text: str) -> Version:
    """Parse ``text`` as a version."""
    return Version(text)


def series(text: str) -> str:
    """Return the major and minor number of the version ``text``.

    >>> series("11.2.2")
    '11.2'
    """
    return ".".join(text.split(".")[:2])


def kernel_version(release: str) -> Version | None:
    """Return the version at the start of ``release`` (the output of ``uname -r``); ``None`` without one.

    >>> str(kernel_version("5.15.0-91-generic"))
    '5.15.0'
    """
    match = re.match(r"\d+\.\d+(\.\d+)?", release)
    return Version(match[0]) if match else None
