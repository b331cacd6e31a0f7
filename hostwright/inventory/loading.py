"""Reads an inventory: one file, or a directory of them with ``group_vars/`` and ``host_vars/`` beside."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.yamlfile import read_text
from hostwright.inventory.draft import Draft
from hostwright.inventory.merging import merge
from hostwright.inventory.model import Inventory
from hostwright.inventory.reading.dynamic import read_executable
from hostwright.inventory.reading.ini import read_ini
from hostwright.inventory.reading.variablefiles import read_variable_files
from hostwright.inventory.reading.yaml_dialect import read_yaml

_YAML = (".yml", ".yaml", ".json")
_INI = (".ini", "")
_LOOKS_LIKE_YAML = re.compile(r"^(---|\{|[^\s#;\[][^=\[]*:\s*(#.*)?$)")


def load(path: Path, *, extra: Mapping[str, str] | None = None) -> Inventory:
    """Read the inventory at ``path``; ``extra`` are the command line's variables, which win over all others.

    In a directory, every ``*.yml``, ``*.yaml``, ``*.json`` and ``*.ini`` file, every file without an extension and
    every program is read, in alphabetical order. Raises ``InputErrors`` with every mistake in every file.
    """
    draft = Draft()
    with _collector_resting():
        for file in _files(path):
            try:
                _read(file, draft)
            except InputErrors as error:
                draft.errors += error.errors
            except InputError as error:
                draft.errors.append(error)
        read_variable_files(path if path.is_dir() else path.parent, draft)
        return merge(draft, extra or {})


@contextmanager
def _collector_resting() -> Iterator[None]:
    """Pause garbage collection: reading 10,000 hosts makes half a million values and no garbage; it would double the
    time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(
            "there is no such inventory; name one with --inventory, or create inventory/hosts.yml", str(path)
        )
    if not path.is_dir():
        return [path]
    files = [file for file in sorted(path.iterdir()) if file.is_file() and _is_inventory(file)]
    if not files:
        raise InputError("contains no inventory; create a hosts.yml there", str(path))
    return files


def _is_inventory(file: Path) -> bool:
    if file.name.startswith(".") or file.name.endswith("~"):
        return False
    return file.suffix in (*_YAML, *_INI) or os.access(file, os.X_OK)


def _read(file: Path, draft: Draft) -> None:
    if file.suffix not in _YAML and os.access(file, os.X_OK):
        read_executable(file, draft)
        return
    text = read_text(file)
    if file.suffix in _YAML or (file.suffix == "" and _looks_like_yaml(text)):
        read_yaml(text, str(file), draft)
    else:
        read_ini(text, str(file), draft)


def _looks_like_yaml(text: str) -> bool:
    """Whether the first meaningful line is YAML (``all:``), not INI (``[gpu]``, ``gpu01 key=value``)."""
    first = next((line for line in text.splitlines() if line.strip() and line.strip()[0] not in "#;"), "")
    return _LOOKS_LIKE_YAML.match(first) is not None
