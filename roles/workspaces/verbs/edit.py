"""Editor of ``inventory/workspaces.yml`` that keeps other lines, comments and order."""

from __future__ import annotations

import difflib
import fcntl
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from hostwright.cli.verb import Host, bind, definitions, load
from hostwright.roles import InputError, Unquoted, on_interrupt, parse_document, suggestion, write_whole
from hostwright.standard.roles.workspaces import Workspaces
from hostwright.standard.roles.workspaces.verbs.giventext import GivenText

FILE = "workspaces.yml"
ROLE = "workspaces"
VARIABLE = "workspaces_containers"
REFRESHED = "workspaces_refreshed"
#: pattern of a key and an indented line below it, with both indentations as groups
_DEEPER = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*(\1 +)(?=[^\s#-])", re.MULTILINE)
_DASH = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*(\1 *)(- +)(?=[^\s#])", re.MULTILINE)


def edited(inventory: Path, host_name: str, name: str, entry: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return the text of ``workspaces.yml`` before and after a change of the workspace ``name``.

    ``entry`` is the new entry; ``None`` removes the workspace. Raises ``InputError`` if a workspace to remove is
    missing, or the file cannot be edited.
    """

    def change(document: Any) -> None:
        spaces = _spaces(document, host_name, make=entry is not None)
        if entry is not None:
            _put(spaces, name, entry)
        elif name in spaces:
            del spaces[name]
        else:
            sentence = f"{host_name} has no workspace {name!r} in this file; {suggestion(name, map(str, spaces))}"
            raise InputError(sentence, str(place(inventory)))

    return _rewritten(inventory, change)


def declared_entry(inventory: Path, host_name: str, name: str) -> dict[str, Any] | None:
    """Return the entry of the host's workspace ``name`` in ``workspaces.yml``; ``None`` if missing. Raises
    ``InputError`` if the file cannot be read.
    """
    path = place(inventory)
    try:
        document = _yaml("").load(path.read_text("utf-8") if path.exists() else "") or CommentedMap()
        entry = _spaces(document, host_name, make=False).get(name)
        return None if entry is None else dict(entry)
    except (OSError, YAMLError, UnicodeError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", str(path)) from error


def dated(inventory: Path, date: Callable[[str], str]) -> tuple[str, str]:
    """Return the text of ``workspaces.yml`` before and after a change of the images' date.

    ``date`` receives the old date and returns the new date.
    """

    def change(document: Any) -> None:
        variables = _inside(_inside(document, "all"), "vars")
        of_role = variables.get(ROLE)
        where, key = (of_role, "refreshed") if isinstance(of_role, dict) else (variables, REFRESHED)
        where[key] = DoubleQuotedScalarString(date(str(where.get(key) or "")))

    return _rewritten(inventory, change)


def _rewritten(inventory: Path, change: Callable[[Any], None]) -> tuple[str, str]:
    path = place(inventory)
    try:
        before = path.read_text("utf-8") if path.exists() else ""
        yaml = _yaml(before)
        document = yaml.load(before) or CommentedMap()
        change(document)
        after = io.StringIO()
        yaml.dump(document, after)
    except (OSError, YAMLError, UnicodeError, AttributeError, TypeError) as error:
        raise InputError(f"cannot be edited: {error}", str(path)) from error
    return before, after.getvalue()


def place(inventory: Path) -> Path:
    """Return the path of ``workspaces.yml``. Raises ``InputError`` if ``inventory`` is not a directory."""
    if not inventory.is_dir():
        raise InputError(
            "not a directory; workspaces need an inventory that is a directory",
            str(inventory),
        )
    return inventory / FILE


def checked(inventory: Path, name: str, text: str) -> Workspaces:
    """Return the variables of the host ``name`` as if ``workspaces.yml`` contained ``text``.

    Raises ``InputError`` for a mistake in ``text``, with the line in the current file, or with the task option for this
    text.
    """
    with _as_it_will_be(inventory, text) as (hosts, folder):
        if name not in hosts:
            raise InputError(f"{name} is not a host of this inventory", f"{folder}/{FILE}")
        _elsewhere(hosts[name], folder, "containers", f"the workspaces of {name}")
        return bind(Workspaces, ROLE, hosts[name])


def checked_date(inventory: Path, names: Iterable[str], text: str) -> None:
    """Raise ``InputError`` if another file overrides the image date in ``text`` for one of the hosts ``names``."""
    with _as_it_will_be(inventory, text) as (hosts, folder):
        for name in names:
            _elsewhere(hosts[name], folder, "refreshed", f"the image date of {name}")


@contextmanager
def _as_it_will_be(inventory: Path, text: str) -> Iterator[tuple[Mapping[str, Host], Path]]:
    """Yield the hosts as if ``workspaces.yml`` contained ``text``, and the temporary directory of that inventory.

    The real file is unchanged, so that other processes never read an invalid file.
    """
    real = place(inventory)
    before = real.read_text("utf-8") if real.exists() else ""
    with tempfile.TemporaryDirectory(prefix="hostwright-") as folder:
        for each in inventory.iterdir():
            if each.name != FILE:
                (Path(folder) / each.name).symlink_to(each.resolve())
        (Path(folder) / FILE).write_text(text, "utf-8")
        try:
            yield load(Path(folder)).hosts, Path(folder)
        except InputError as error:
            given = GivenText(f"{folder}/{FILE}", text, str(real), before)
            raise given.reworded(error) from None


def _elsewhere(host: Host, folder: Path, key: str, what: str) -> None:
    """Raise ``InputError`` if another file than ``workspaces.yml`` also sets ``key``, because one file would override
    the other.
    """
    for definition in definitions(host, ROLE, key):
        file = definition.origin.file
        if Path(file).name != FILE or Path(file).parent != folder:
            here = str(definition.origin).replace(f"{folder}/", "")
            raise InputError(f"{here} also sets {what}; move the setting to {FILE}, or change it in the first file")


@contextmanager
def alone(inventory: Path) -> Iterator[None]:
    """Lock ``workspaces.yml`` against other editors on this machine, which wait and then read the new text."""
    try:
        folder = os.open(inventory, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"cannot be opened: {os.strerror(error.errno or 0)}", str(inventory)) from error
    try:
        with suppress(OSError):  # a filesystem may lack locks; `written` still detects a change
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def once_written(inventory: Path) -> AbstractContextManager[None]:
    """Return a context for the steps after ``written``, in which Ctrl-C reports that ``workspaces.yml`` was written."""
    return on_interrupt(f"interrupted. {place(inventory)} was written; the next provision of the host applies it")


def written(inventory: Path, before: str, after: str) -> None:
    """Write ``after`` to ``workspaces.yml``. Raises ``InputError`` if the file differs from ``before``, or is not
    writable.
    """
    path = place(inventory)
    now = path.read_text("utf-8") if path.exists() else ""
    if now != before:
        raise InputError(
            "the file changed during this command, so nothing was written; run the command again", str(path)
        )
    try:
        write_whole(path, after.encode(), mode=path.stat().st_mode & 0o777 if path.exists() else 0o644)
    except OSError as error:
        raise InputError(f"cannot be written: {os.strerror(error.errno or 0)}", str(path)) from error


def changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the lines removed from ``before`` and added in ``after``, marked as in ``diff``."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return (line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---")))


def _yaml(text: str) -> YAML:
    """Return a YAML reader and writer that keeps the indentation of ``text`` and all unchanged lines."""
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 4096
    deeper = _DEEPER.search(text)
    mapping = len(deeper[2]) - len(deeper[1]) if deeper else 2
    dash = _DASH.search(text)
    offset = len(dash[2]) - len(dash[1]) if dash else 2
    yaml.indent(mapping=mapping, sequence=offset + (len(dash[3]) if dash else 2), offset=offset)
    return yaml


def _spaces(document: Any, name: str, *, make: bool) -> Any:
    variables = next(_found(document, name), None)
    if variables is None:
        if not make:
            return {}
        variables = _inside(_inside(_inside(document, "all"), "hosts"), name)
    of_role = variables.get(ROLE)
    if isinstance(of_role, dict):
        return _inside(of_role, "containers")
    return _inside(variables, VARIABLE)


def _found(groups: Any, name: str) -> Iterator[Any]:
    for group in groups.values() if isinstance(groups, dict) else ():
        if not isinstance(group, dict):
            continue
        hosts = group.get("hosts")
        if isinstance(hosts, dict) and name in hosts:
            yield _inside(hosts, name)
        yield from _found(group.get("children"), name)


def _inside(mapping: Any, key: str) -> Any:
    if mapping.get(key) is None:
        mapping[key] = CommentedMap()
    return mapping[key]


def _put(spaces: Any, name: str, entry: Mapping[str, Any]) -> None:
    """Write ``entry`` as the workspace ``name``, and keep the notation of unchanged fields."""
    node = spaces.get(name)
    several_lines = any(isinstance(value, str) and "\n" in value for value in entry.values())
    if not isinstance(node, CommentedMap) or (several_lines and node.fa.flow_style()):
        spaces[name] = _flow(entry)
        return
    for key in [key for key in node if key not in entry]:
        del node[key]
    for key, value in entry.items():
        if key not in node or node[key] != value:
            node[key] = _plain(value)


def _flow(entry: Mapping[str, Any]) -> CommentedMap:
    node = CommentedMap({name: _plain(value) for name, value in entry.items()})
    if not any(isinstance(value, str) and "\n" in value for value in entry.values()):
        node.fa.set_flow_style()
    return node


def _plain(value: Any) -> Any:
    """Add quotes to each text that YAML parsers could read as another type: ``yes``, ``1:30``, ``1e3``."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return CommentedMap({key: _plain(item) for key, item in value.items()})
    if not isinstance(value, str) or "\n" in value:
        return value
    try:
        (read,) = parse_document(f"[{value}]", FILE).data
    except (InputError, ValueError):
        read = None
    return value if read == value and not isinstance(read, Unquoted) else DoubleQuotedScalarString(value)
