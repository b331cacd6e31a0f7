"""Parses YAML files to plain data, and records file and line of every value.

Dates remain text, and all keys become text. A number keeps its text in the file (see ``unquoted.py``). Duplicate keys,
recursive aliases and unknown tags are reported as mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from hostwright.common.errors import InputError, InputErrors
from hostwright.common.input.unquoted import number_as_written, text_as_written
from hostwright.common.input.vault import OPTION, Vault
from hostwright.common.places import unread
from hostwright.common.secret import Secret

Where = tuple[str | int, ...]  #: path to a value in a document, as keys and indices from the top

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml parses ten times faster than the Python loader.
_CONTAINERS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Position of a value in a file. ``line`` and ``column`` count from 1; line 0 means the whole file."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def exact(self) -> str:
        """File, line and column, as ``FILE:LINE:COLUMN``, which editors can open."""
        return f"{self}:{self.column}" if self.column else str(self)


@dataclass(frozen=True, slots=True)
class Vaulted:
    """A value encrypted with Ansible Vault (``!vault``) that could not be decrypted."""

    sentence: str = f"is encrypted with Ansible Vault; pass {OPTION} FILE"

    def __str__(self) -> str:
        return "(encrypted with Ansible Vault)"


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed YAML file: its data, and a position for the path of each value."""

    data: Any
    origins: Mapping[Where, Origin]

    def at(self, where: Where) -> Origin | None:
        """Return the position of the value at the path ``where``, or of the innermost known value around it."""
        while where and where not in self.origins:
            where = where[:-1]
        return self.origins.get(where)


def read_text(path: Path) -> str:
    """Read the text file ``path``. Raises ``InputError`` if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {unread(error)}", str(path)) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError("is not UTF-8 text; save it as UTF-8", f"{path}:{line}") from error


def compose(text: str, file: str) -> yaml.Node | None:
    """Parse YAML text to nodes with positions; ``None`` for an empty text.

    Raises ``InputError`` for invalid YAML.
    """
    try:
        check_depth(text, file, _LOADER)
        loader = _LOADER(text)
        try:
            node: yaml.Node | None = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from error
    except yaml.YAMLError as error:
        raise InputError(f"cannot be parsed: {' '.join(str(error).split())}", file) from error
    except RecursionError as error:
        raise InputError("is nested too deeply", file) from error
    if node is not None:
        check_size(node, file)
    return node


def load_document(path: Path) -> Document:
    """Read the YAML file ``path``. Raises ``InputErrors`` with every mistake in the file."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, file: str) -> Document:
    """Parse the YAML ``text`` of ``file`` to a document. The data of an empty text is ``None``."""
    node = compose(text, file)
    reader = Reader(file)
    origins: dict[Where, Origin] = {}
    data = reader.plain(node, origins) if node is not None else None
    if reader.errors:
        raise InputErrors(reader.errors)
    return Document(data, origins)


@dataclass(slots=True)
class Reader:
    """Converts the nodes of one file to data, and collects all mistakes instead of stopping at the first.

    ``vault`` decrypts encrypted values, which become ``Secret``. ``sealed`` means that the whole file was encrypted, so
    every text in it becomes a ``Secret``.
    """

    file: str
    vault: Vault = field(default_factory=Vault)
    sealed: bool = False
    errors: list[InputError] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _merging: set[int] = field(default_factory=set)
    _count: int = 0
    _scalars: Any = field(default_factory=SafeConstructor)

    def origin(self, node: yaml.Node) -> Origin:
        """Return the position in the file at which ``node`` begins."""
        mark = node.start_mark
        return Origin(self.file, mark.line + 1, mark.column + 1)

    def fail(self, node: yaml.Node, message: str) -> None:
        """Record a mistake at the position of ``node``."""
        self.errors.append(InputError(message, self.origin(node).exact))

    def pairs(self, node: yaml.Node, what: str) -> list[tuple[str, yaml.Node, yaml.Node]]:
        """Return the entries of the mapping ``node`` as key text, key node and value node.

        ``what`` names the mapping in messages. An empty value counts as an empty mapping. Entries that ``<<`` merges
        come after the other entries.
        """
        if isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null"):
            return []
        if not isinstance(node, yaml.MappingNode):
            sentence = f"found {describe_node(node)}, expected {what} as a mapping ('name: value' lines)"
            self.fail(node, sentence + _assigned(node))
            return []
        own: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: list[tuple[str, yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag == _MERGE:
                merged += self._merged(node, value, what)
            elif not isinstance(key, yaml.ScalarNode):
                self.fail(key, f"found {describe_node(key)} as a key, expected plain text")
            elif key.value in own:
                first = self.origin(own[key.value][0])
                self.fail(key, f"{key.value!r} is given twice: first at {first}, again here; remove one")
            else:
                own[key.value] = (key, value)
        result = [(name, key, value) for name, (key, value) in own.items()]
        for name, key, value in merged:
            if name not in own:
                own[name] = (key, value)
                result.append((name, key, value))
        return result

    def _merged(self, node: yaml.Node, value: yaml.Node, what: str) -> list[tuple[str, yaml.Node, yaml.Node]]:
        if id(value) in self._merging:
            self.fail(node, "the alias refers to itself")
            return []
        self._merging.add(id(value))
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        result = [pair for source in sources for pair in self.pairs(source, what)]
        self._merging.discard(id(value))
        return result

    def plain(self, node: yaml.Node, origins: dict[Where, Origin] | None = None, where: Where = ()) -> Any:
        """Convert ``node`` to plain data.

        The position of each value is added to ``origins``, under a path that begins with ``where``.
        """
        self._count += 1
        if self._count > MAX_VALUES:
            raise InputError(f"expands to more than {MAX_VALUES} values", self.origin(node).exact)
        if origins is not None:
            origins.setdefault(where, self.origin(node))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if not self._enter(node):
            return None
        data = (
            self._mapping(node, origins, where)
            if isinstance(node, yaml.MappingNode)
            else [self.plain(item, origins, (*where, index)) for index, item in enumerate(node.value)]
        )
        self._open.discard(id(node))
        return data

    def _mapping(self, node: yaml.Node, origins: dict[Where, Origin] | None, where: Where) -> dict[str, Any]:
        data = {}
        for name, key, value in self.pairs(node, "this"):
            inner = (*where, name)
            if origins is not None:
                origins[inner] = self.origin(key)
            data[name] = self.plain(value, origins, inner)
        return data

    def _enter(self, node: yaml.Node) -> bool:
        if node.tag not in _CONTAINERS:
            self._foreign(node)
            return False
        if id(node) in self._open:
            self.fail(node, "the alias refers to itself")
            return False
        self._open.add(id(node))
        return True

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        kind = node.tag.removeprefix("tag:yaml.org,2002:")
        text: str = node.value
        if kind in ("str", "timestamp", "value", "!unsafe"):
            if self.sealed:
                return Secret(text)
            return text if node.style else text_as_written(text, date=kind == "timestamp")
        try:
            return self._special(kind, node)
        except (ValueError, KeyError):
            self.fail(node, f"{text!r} is not a valid {kind}")
            return None

    def _special(self, kind: str, node: yaml.ScalarNode) -> Any:
        if kind == "null":
            return None
        if kind in ("!vault", "!vault-encrypted"):
            return self._opened(node)
        if kind in ("bool", "int", "float"):
            return number_as_written(getattr(self._scalars, f"construct_yaml_{kind}")(node), node.value)
        self._foreign(node)
        return None

    def _opened(self, node: yaml.ScalarNode) -> Secret | Vaulted:
        """Decrypt the encrypted value ``node``. As in Ansible, a failure is an error only when the value is used."""
        try:
            return Secret(self.vault.opened(node.value)) if self.vault.known else Vaulted()
        except ValueError as error:
            return Vaulted(str(error))

    def _foreign(self, node: yaml.Node) -> None:
        self.fail(node, f"the tag {node.tag} is not allowed; expected text, a number, true or false, a list, a mapping")


def describe_node(node: yaml.Node) -> str:
    """Return a description of the value of ``node`` for a message: ``a list``, ``'x'``."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node.tag.endswith(":null") else f"{node.value[:60]!r}"


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> InputError:
    mark = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context)
    if mark is None:
        return InputError(f"cannot be parsed: {problem}", file)
    hint = _hint(problem, text.splitlines(), mark.line, mark.column)
    since = f" (in the block from line {error.context_mark.line + 1})" if error.context_mark else ""
    where = Origin(file, mark.line + 1, mark.column + 1).exact
    return InputError(f"is not valid YAML: {problem}{since}{'; ' + hint if hint else ''}", where)


MAX_VALUES = 2_000_000  #: maximum number of values in a file after aliases are expanded
MAX_DEPTH = 100  #: maximum nesting depth of mappings and lists
#: estimated nesting depth from which the exact depth is checked. libyaml overflows the stack at about 20,000 levels.
_SUSPECT = 1000
_BRACKETS = re.compile(r"[\[\]{}]")
_SIGNS = re.compile(rf"^[ ?:-]{{{_SUSPECT}}}", re.MULTILINE)


def check_depth(text: str, file: str, loader: Any) -> None:
    """Raise ``InputError`` if ``text`` is nested so deeply that parsing it would crash the process."""
    depth = deepest = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    if deepest < _SUSPECT and not _SIGNS.search(text):
        return
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError("is nested too deeply", file)


def check_size(top: yaml.Node, file: str) -> None:
    """Raise ``InputError`` if the document below ``top`` has more than ``MAX_VALUES`` values or ``MAX_DEPTH`` levels.

    Aliases and ``<<`` count as if they were expanded, but nothing is expanded.
    """
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    waiting: list[tuple[yaml.Node, bool]] = [(top, False)]
    while waiting:
        node, done = waiting.pop()
        inner = _inside(node)
        if done:
            open_nodes.discard(id(node))
            sizes[id(node)] = min(MAX_VALUES + 1, 1 + sum(sizes.get(id(child), 1) for child in inner))
        elif id(node) not in sizes and id(node) not in open_nodes:
            open_nodes.add(id(node))
            waiting.append((node, True))
            waiting += [(child, False) for child in inner]
        if len(open_nodes) > MAX_DEPTH:
            raise InputError("is nested too deeply", file)
    if sizes[id(top)] > MAX_VALUES:
        raise InputError(f"expands to more than {MAX_VALUES} values", file)


def _inside(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


_HINTS = {
    "mapping values are not allowed": "quote a value that contains ': ', and check the indentation",
    "could not find expected ':'": "expected 'name: value'",
    "did not find expected key": "expected 'name: value' at the indentation of its neighbours",
    "did not find expected '-' indicator": "expected '- value' at the indentation of its neighbours",
    "found unexpected end of stream": "a quote or bracket is not closed",
    "found another document": "expected one document; a second one begins at '---'",
}
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>\S+)")
_WORD = re.compile(r"[\w.@-]+")


def _hint(problem: str, lines: Sequence[str], number: int, column: int) -> str:
    """Return advice about a line that YAML cannot parse, or an empty text. ``number`` and ``column`` count from 0.

    >>> _hint("mapping values are not allowed in this context", ["rack3", "  hosts: {}"], 1, 7)
    'the line above lacks a colon: `rack3:`'
    """
    line = lines[number] if number < len(lines) else ""
    if line[column : column + 1] == "\t" or "\t" in line[: _depth(line)]:
        return "indent with spaces, not with a tab"
    if "mapping values" in problem and (word := _word_above(lines, number)):
        return f"the line above lacks a colon: `{word}:`"
    return next((hint for sign, hint in _HINTS.items() if sign in problem), "")


def _assigned(node: yaml.Node) -> str:
    found = _ASSIGNED.fullmatch(node.value) if isinstance(node, yaml.ScalarNode) else None
    return f": `{found['name']}: {found['value']}`" if found else ""


def _word_above(lines: Sequence[str], number: int) -> str:
    above = next((line for line in reversed(lines[:number]) if line.strip()), "")
    deeper = number < len(lines) and _depth(lines[number]) > _depth(above)
    return above.strip() if deeper and _WORD.fullmatch(above.strip()) else ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
