"""Reads ``group_vars/`` and ``host_vars/``, which have a file or a directory of files for each group or host.

As in Ansible, only the first of ``web``, ``web.yml``, ``web.yaml`` and ``web.json`` that exists is read for ``web``. If
that one is a directory, all files in it are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.vault import OPTION, is_vault
from hostwright.common.input.yamlfile import read_text
from hostwright.inventory.draft import Draft, Values, group_level
from hostwright.inventory.model import HOST_LEVEL
from hostwright.inventory.reading.yaml_dialect import read_variables

_ENDINGS = ("", ".yml", ".yaml", ".json")  #: endings of variable files, in Ansible's order of precedence
#: maximum number of file names in a note about ignored files
_NAMED = 10


def read_variable_files(directory: Path, draft: Draft) -> None:
    """Add the variables in ``group_vars/`` and ``host_vars/`` of ``directory`` to ``draft``."""
    for name, files in _by_name(directory / "group_vars", draft.groups, "group", draft):
        for values in _layers(files, group_level(name), draft, draft.of_groups.setdefault(name, [])):
            draft.groups[name].files.append(values)
    for name, files in _by_name(directory / "host_vars", draft.hosts, "host", draft):
        for values in _layers(files, HOST_LEVEL, draft, draft.of_hosts.setdefault(name, [])):
            draft.hosts[name].append(values)


def _by_name(directory: Path, known: Iterable[str], kind: str, draft: Draft) -> Iterator[tuple[str, list[Path]]]:
    """Yield each group or host in ``known`` with its files. A note reports files for unknown names, which may be
    misspelt.
    """
    if not directory.is_dir():
        return
    names = set(known)
    chosen: dict[str, list[Path]] = {}
    strangers: list[tuple[Path, str]] = []
    for entry in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.name.endswith("~"):
            continue
        name = _name(entry, names)
        if name in names:
            chosen.setdefault(name, []).append(entry)
        else:
            strangers.append((entry, name))
    draft.notes += _passed_over(directory, strangers, kind, names)
    for name, entries in chosen.items():
        first, *rest = sorted(entries, key=lambda entry: _ENDINGS.index(entry.name.removeprefix(name)))
        for entry in rest:
            draft.notes.append(
                f"{entry}: is not read, because {first.name} exists (as in Ansible); merge the two files"
            )
        yield name, list(_files(first, draft))


def _name(entry: Path, names: set[str]) -> str:
    if entry.name not in names and entry.suffix in _ENDINGS:
        return entry.name.removesuffix(entry.suffix)
    return entry.name


def _passed_over(directory: Path, strangers: list[tuple[Path, str]], kind: str, names: set[str]) -> Iterator[str]:
    if len(strangers) > _NAMED:
        few = ", ".join(entry.name for entry, _ in strangers[:_NAMED])
        yield f"{directory}: {len(strangers)} files are not read, because no {kind} has their names: {few}, …"
        return
    for entry, name in strangers:
        yield f"{entry}: there is no {kind} {name!r}, so it is not read; {suggestion(name, names)}"


def _files(entry: Path, draft: Draft) -> Iterator[Path]:
    if entry.is_file():
        yield entry
    elif entry.is_dir():
        for path in sorted(entry.iterdir(), key=lambda path: path.name):
            if path.name.startswith(".") or path.name.endswith("~"):
                continue
            if path.is_dir() and not path.suffix:
                yield from _files(path, draft)
            elif path.is_file() and path.suffix in _ENDINGS:
                yield path
            else:
                draft.notes.append(f"{path}: is not read, because its name does not end in .yml, .yaml or .json")
    else:
        draft.notes.append(f"{entry}: is not read, because it is neither a file nor a directory")


def _layers(files: Iterable[Path], level: str, draft: Draft, mistakes: list[InputError]) -> Iterator[Values]:
    for path in files:
        trial = draft.trial()
        try:
            text = read_text(path)
            if is_vault(text) and not draft.vault.known:
                draft.notes.append(f"{path}: is encrypted with Ansible Vault and not read; pass {OPTION} FILE")
            else:
                yield read_variables(text, str(path), level, trial)
        except InputError as error:
            mistakes.append(error)
        mistakes += trial.errors
