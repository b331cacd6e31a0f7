"""``group_vars/`` and ``host_vars/``: a file or a directory of files for each group and host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from hostwright.common.errors import InputError
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.yamlfile import read_text
from hostwright.inventory.draft import Draft, Values, group_level
from hostwright.inventory.model import HOST_LEVEL
from hostwright.inventory.reading.yaml_dialect import read_variables

_SUFFIXES = ("", ".yml", ".yaml", ".json")
_VAULT = "$ANSIBLE_VAULT;"


def read_variable_files(directory: Path, draft: Draft) -> None:
    """Add the variables beside the inventory in ``directory``; they win over those in the inventory's own files."""
    for name, files in _by_name(directory / "group_vars", draft.groups, "group", draft):
        draft.groups[name].layers += _layers(files, group_level(name), draft)
    for name, files in _by_name(directory / "host_vars", draft.hosts, "host", draft):
        draft.hosts[name] += _layers(files, HOST_LEVEL, draft)


def _by_name(directory: Path, known: Iterable[str], kind: str, draft: Draft) -> Iterator[tuple[str, list[Path]]]:
    """The files of each known name. Others are noted: otherwise a misspelt file name would silently lose its
    variables."""
    if not directory.is_dir():
        return
    names = set(known)
    for entry in sorted(directory.iterdir()):
        name = entry.name if entry.is_dir() else _stem(entry)
        if name is None or entry.name.startswith("."):
            continue
        if name in names:
            yield name, sorted(_files(entry))
        else:
            draft.notes.append(f"{entry}: there is no {kind} {name!r}, so it is not read; {suggestion(name, names)}")


def _files(entry: Path) -> Iterator[Path]:
    if entry.is_file():
        yield entry
    else:
        for path in entry.rglob("*"):
            if path.is_file() and _stem(path) is not None and not path.name.startswith("."):
                yield path


def _stem(path: Path) -> str | None:
    return path.name.removesuffix(path.suffix) if path.suffix in _SUFFIXES else None


def _layers(files: Iterable[Path], level: str, draft: Draft) -> list[Values]:
    layers: list[Values] = []
    for path in files:
        try:
            text = read_text(path)
            if text.startswith(_VAULT):
                draft.notes.append(
                    f"{path}: is encrypted with Ansible Vault and not read; a sudo password can be given at the prompt"
                )
            else:
                layers.append(read_variables(text, str(path), level, draft))
        except InputError as error:
            draft.errors.append(error)
    return layers
