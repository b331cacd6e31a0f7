"""Parses the options of the verb ``mirror``: file source, Python versions, and package search."""

from __future__ import annotations

import re
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.text import printable
from hostwright.common.userpaths import expanded
from hostwright.plan.stacks.packages import PackageSearch, system
from hostwright.stack.store.aptroot import AptArchive
from hostwright.stack.store.sources import Exported, FileSource, OwnFiles


def file_source(source: str, imported: str) -> FileSource | None:
    """Return the source of files that ``imported`` (``--import``) or ``source`` (``--from``) names; ``None`` without
    both.

    Raises ``InputError`` if both are given, or for an unsuitable directory.
    """
    if source and imported:
        raise InputError("--from adds to the download, but --import replaces it; pass only one of them")
    if imported:
        return Exported(expanded(imported))
    return OwnFiles(expanded(source)) if source else None


def pythons_in(text: str) -> tuple[str, ...]:
    """Parse ``text``, the value of ``--pythons``, to Python versions. Raises ``InputError`` for an invalid version."""
    named = _listed(text)
    for python in named:
        if not re.fullmatch(r"3\.[0-9]{1,2}", python):
            raise InputError(f"found {printable(python)!r}, expected Python versions such as 3.9,3.10", "--pythons")
    return named


def package_search(systems: str, sources: str, keyring: str, *, renew: bool) -> PackageSearch:
    """Parse the options of ``mirror`` that define how packages of distributions are found.

    Raises ``InputError`` for an invalid option.
    """
    archive = AptArchive(_file(sources, "--sources"), _file(keyring, "--keyring"))
    return PackageSearch(tuple(map(system, _listed(systems))), renew, archive)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _file(name: str, option: str) -> Path | None:
    path = expanded(name) if name else None
    if path is not None and not path.is_file():
        raise InputError(f"{path} is not a file", option)
    return path
