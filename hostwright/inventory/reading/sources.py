"""Selects the files of an inventory, and the format of each file, as Ansible does."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.ownership import NotTrusted, fault_below, fault_of, in_named_site
from hostwright.common.input.vault import is_vault
from hostwright.common.input.yamlfile import Origin, read_text
from hostwright.inventory.draft import Draft
from hostwright.inventory.model import UNGROUPED
from hostwright.inventory.reading.ansible import Ignored
from hostwright.inventory.reading.dynamic import CannotBeRun, read_executable
from hostwright.inventory.reading.ini import read_ini
from hostwright.inventory.reading.yaml_dialect import read_yaml

_YAML = (".yml", ".yaml", ".json")
_INVENTORIES = (
    "",
    ".ini",
    *_YAML,
)  #: endings of inventory files
_LOOKS_LIKE_YAML = re.compile(r"^(---|\{|[^\s#;\[][^=\[]*:\s*(#.*)?$)")
_IGNORED_NAMES = ("group_vars", "host_vars", "vars_plugins")
_IGNORED_ENDINGS = (
    ".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry",
)  # fmt: skip
_STACKS = "stacks"
#: names of folders that are read beside a file of hosts
_BESIDE = ("group_vars", "host_vars", _STACKS)


def sources_of(named: Path) -> list[Path]:
    """Split the value of ``--inventory``: one path, several paths with commas between them, or a list of hosts."""
    parts = [Path(part.strip()) for part in str(named).split(",") if part.strip()]
    if len(parts) < 2 or named.exists() or not all(part.exists() for part in parts):
        return [named]
    return parts


def beside(source: Path) -> Path | None:
    """Return the directory with the variables and stacks of the inventory ``source``.

    ``None`` if other users could create files in the directory. Raises ``NotTrusted`` if other users could have written
    existing variables or stacks: the operator named only the file, not the directory.
    """
    folder = source.absolute().parent
    if source.is_dir() or in_named_site(folder):
        return source if source.is_dir() else source.parent
    open_to_others = fault_of(folder)
    there = [folder / name for name in _BESIDE if (folder / name).exists()]
    for place in there:
        if fault := open_to_others or fault_below(place):
            sentence = f"other users may be able to change {place.name}/ beside the inventory: {fault}"
            raise NotTrusted(f"{sentence}; move the inventory to a directory that only you can write to")
    return None if open_to_others else source.parent


def identity_of(sources: Sequence[Path]) -> Path:
    """Return the path that identifies an inventory in records: its only source, or all its sources in order."""
    if len(sources) == 1:
        return sources[0]
    return Path(",".join(str(source.absolute() if source.exists() else source) for source in sources))


def files_of(path: Path, ignored: Ignored) -> list[Path]:
    """Return the files of the inventory ``path`` in reading order, without ``ignored`` files.

    Raises ``InputError`` if no file is left.
    """
    if not path.exists():
        raise InputError(
            "there is no such inventory; name one with --inventory, or create inventory/hosts.yml", str(path)
        )
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError("is neither a file nor a directory, so it cannot be an inventory", str(path))
    entries = [entry for entry in _entries(path, ignored) if entry.name != _STACKS]
    files = [file for entry in entries for file in _below(entry, {path.resolve()}, ignored)]
    if not files:
        raise InputError("contains no inventory; create a hosts.yml there", str(path))
    return files


def _entries(folder: Path, ignored: Ignored) -> list[Path]:
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return [entry for entry in entries if not _is_ignored(entry.name, ignored)]


def _is_ignored(name: str, ignored: Ignored) -> bool:
    endings = _IGNORED_ENDINGS if ignored.endings is None else ignored.endings
    left_out = name.startswith(".") or name in _IGNORED_NAMES or name.endswith(endings)
    return left_out or any(pattern.search(name) for pattern in ignored.patterns)


def _below(entry: Path, above: set[Path], ignored: Ignored) -> list[Path]:
    """Return ``entry`` if it is a file, or all files below it. A link to a directory in ``above`` is not followed."""
    if not entry.is_dir():
        return [entry] if entry.is_file() else []
    here = entry.resolve()
    if here in above:
        return []
    return [file for inner in _entries(entry, ignored) for file in _below(inner, above | {here}, ignored)]


def is_stray(file: Path, read: Draft) -> bool:
    """Return whether ``file`` in an inventory directory is not an inventory, such as a table (``.csv``) or source code.

    In such a file, no line begins with a possible host name, and the file's ending is unusual for inventories.
    """
    return file.suffix not in _INVENTORIES and bool(read.hosts) and read.hosts.keys() <= read.unusable


def read_list(listed: str, draft: Draft) -> None:
    """Add the hosts in ``listed``, such as ``gpu01,gpu02,``, to ``draft``."""
    group = draft.group(UNGROUPED, Origin("--inventory"))
    for name in filter(None, map(str.strip, listed.split(","))):
        draft.add_hosts(group, name, {}, Origin("--inventory"))


def read_file(file: Path, draft: Draft, tell: Callable[[str], None]) -> bool:
    """Add the hosts and variables of ``file`` to ``draft``. Return ``False`` if only a plugin of Ansible can read the
    file.
    """
    cannot_run: InputError | None = None
    if os.access(file, os.X_OK) and file.suffix not in _YAML:
        try:
            read_executable(file, draft, tell)
            return True
        except CannotBeRun as error:  # The file may be a text with an executable bit.
            cannot_run = error
    if file.suffix == ".toml":
        return False
    text = read_text(file)
    if is_vault(text):
        text = draft.vault.open(text, str(file))
    if text.startswith("#!") and file.suffix not in _YAML:
        raise cannot_run or InputError("is a program without the executable bit; run `chmod +x` on it", str(file))
    first = _read_text(text, file, draft)
    if cannot_run and draft.errors:
        raise cannot_run
    return first


def _read_text(text: str, file: Path, draft: Draft) -> bool:
    as_yaml = file.suffix in _YAML or (file.suffix == "" and _looks_like_yaml(text))
    if not as_yaml and file.suffix and _looks_like_yaml(text):
        draft.errors.append(InputError(f"contains YAML, but is read as INI; rename it to {file.stem}.yml", f"{file}:1"))
        return True
    trial = draft.trial()
    readable, errors = _attempt(text, file, trial, as_yaml=as_yaml)
    if errors and file.suffix in ("", *_YAML):
        other = draft.trial()
        other_readable, other_errors = _attempt(text, file, other, as_yaml=not as_yaml)
        if not other_errors and not other.of_hosts and other.hosts:
            trial, readable, errors = other, other_readable, []
    draft.absorb(trial)
    draft.errors += [error for error in errors if error not in draft.errors]
    return readable


def _attempt(text: str, file: Path, draft: Draft, *, as_yaml: bool) -> tuple[bool, list[InputError]]:
    readable = True
    try:
        if as_yaml:
            readable = read_yaml(text, str(file), draft)
        else:
            read_ini(text, str(file), draft)
    except InputErrors as error:
        return True, list(error.errors)
    except InputError as error:
        return True, [error]
    return readable, list(draft.errors)


def _looks_like_yaml(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and line.strip()[0] not in "#;"), "")
    return _LOOKS_LIKE_YAML.match(first) is not None
