"""Reads an inventory: a file or a directory of files, and the ``group_vars/`` and ``host_vars/`` next to it."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.vault import Vault
from hostwright.inventory.draft import Draft
from hostwright.inventory.merging import merge
from hostwright.inventory.model import Inventory
from hostwright.inventory.reading.ansible import Ignored, configured, read_with_ansible
from hostwright.inventory.reading.sources import beside, files_of, is_stray, read_file, read_list, sources_of
from hostwright.inventory.reading.variablefiles import read_variable_files


def load(
    *sources: Path,
    extra: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    vault: Vault | None = None,
    root: Path | None = None,
) -> Inventory:
    """Read the inventory in ``sources``.

    ``extra`` are the variables on the command line, which override all others. Each source is a file, a directory, or a
    list of hosts with a comma (``gpu01,gpu02,``). In a directory, Hostwright reads the same files as Ansible, in
    alphabetical order. A file that cannot be read is an ``InputError`` if no other file exists, else a note. A mistake
    in ``host_vars/`` or ``group_vars/`` affects only the hosts of that file.

    ``tell`` receives messages while a slow inventory program runs. ``root`` is the directory with the ``ansible.cfg``
    that defines ignored files; by default, the directory of the inventory.
    """
    draft = Draft(vault=vault or Vault())
    with _collector_resting():
        sources = tuple(source for named in sources for source in sources_of(named))
        places = tuple(dict.fromkeys(filter(None, map(beside, sources))))
        files = [(source, file) for source in sources for file in _files(source, root)]
        failed: list[InputError] = []
        plugins: list[Path] = []
        for source, file in files:
            if _is_list(source):
                read_list(str(source), draft)
                continue
            trial = draft.trial()
            if not _read(file, trial, failed, tell):
                plugins.append(file)
            elif len(files) > 1 and is_stray(file, trial):
                failed += [errors[0] for errors in list(trial.of_hosts.values())[:1]]
            elif not trial.errors:
                draft.absorb(trial)
            failed += trial.errors
        if plugins:
            failed += _through_ansible(sources, plugins, draft, tell)
        for place in places:
            read_variable_files(place, draft)
        _settle(draft, failed, only=len(files) == 1)
        return merge(draft, extra or {})


def load_site(
    folder: Path,
    *,
    extra: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    vault: Vault | None = None,
) -> Inventory:
    """Read the inventory of a site from ``folder``.

    If ``folder`` has no hosts, the inventory that the site's ``ansible.cfg`` names is read instead, and a note reports
    this.
    """
    inventory: Inventory | None = None
    root = folder.parent
    if not folder.is_dir() or _has_files(folder, root):
        inventory = load(folder, extra=extra, tell=tell, vault=vault)
        if inventory.hosts:
            return inventory
    other = configured(root)
    if other is None:
        return inventory or load(folder, extra=extra, tell=tell, vault=vault)
    file, sources = other
    note = f"{folder} has no hosts, so the inventory of {file} is read: {', '.join(map(str, sources))}"
    found = load(*sources, extra=extra, tell=tell, vault=vault, root=root)
    return replace(found, notes=(note, *found.notes))


def _has_files(folder: Path, root: Path) -> bool:
    try:
        return bool(_files(folder, root))
    except InputError:
        return False


def _read(file: Path, trial: Draft, failed: list[InputError], tell: Callable[[str], None]) -> bool:
    """Read ``file`` into the draft ``trial``, and add mistakes to ``failed``. Return ``False`` if only Ansible can read
    the file.
    """
    try:
        return read_file(file, trial, tell)
    except InputErrors as error:
        failed += error.errors
    except InputError as error:
        failed.append(error)
    return True


def _through_ansible(
    sources: Sequence[Path], plugins: list[Path], draft: Draft, tell: Callable[[str], None]
) -> list[InputError]:
    try:
        read_with_ansible(sources, plugins, draft, tell)
    except InputError as error:
        return [error]
    return []


def _settle(draft: Draft, failed: list[InputError], *, only: bool) -> None:
    """Report the files that could not be read, as Ansible does. These files are errors if no other file has hosts, else
    notes. ``only`` means that no other file exists.
    """
    undefined = [
        InputError(f"unknown group {name!r}; {suggestion(name, draft.defined)}", origin.exact)
        for name, origin in draft.mentioned.items()
        if name not in draft.defined
    ]
    if only or not draft.hosts.keys() - draft.unusable:
        draft.errors += failed + undefined
    else:
        draft.notes += [f"{error}; the file is left out" for error in failed]
        draft.left_out += failed
        draft.notes += [f"{error}; it has no hosts" for error in undefined]
    if draft.hosts and not draft.hosts.keys() - draft.unusable:
        places = (*draft.of_hosts.values(), *draft.of_groups.values())
        draft.errors += [error for errors in places for error in errors]


def _is_list(source: Path) -> bool:
    return "," in str(source) and not source.exists()


def _files(source: Path, root: Path | None) -> list[Path]:
    if _is_list(source):
        return [source]
    return files_of(source, Ignored.of(root or source.absolute().parent) if source.is_dir() else Ignored())


@contextmanager
def _collector_resting() -> Iterator[None]:
    """Pause Python's garbage collector in the block, because collections would double the time to read 10,000 hosts."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
