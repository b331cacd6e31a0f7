"""Reads Ansible's INI inventories: ``[group]``, ``[group:children]``, ``[group:vars]``, ``host key=value …``.

As in Ansible, values that are Python literals (whole numbers, lists, True) are parsed. A number with a decimal point
remains text, so that a version such as 3.10 keeps its digits.
"""

from __future__ import annotations

import ast
import re
import shlex
from typing import Any

from hostwright.common.input.yamlfile import Origin
from hostwright.inventory.draft import Draft, GroupDraft, concealed, group_level
from hostwright.inventory.model import HOST_LEVEL, UNGROUPED, Value

_SECTION = re.compile(r"\[(?P<name>[^:\]]+)(?::(?P<kind>\w+))?\]\s*(?:[#;].*)?")
_UNFINISHED = re.compile(r"\[[^\]]*")
_MAX_LITERAL = 10_000  #: maximum length in characters of a value that is parsed as a literal
#: pattern of a line without quotes, backslashes or comments, which is split at blanks
_PLAIN_LINE = re.compile(r"[ \t!$-&(-\[\]-~]*")
_DIGITS = re.compile(r"0|[1-9][0-9]{0,17}")
#: pattern of text that is certainly not a Python literal, such as ``/dev/sda``
_WORD = re.compile(r"(?!(?:True|False|None)$)[A-Za-z_/][A-Za-z0-9_./:@-]*|[0-9]+(?:\.[0-9]+){2,}")


def read_ini(text: str, file: str, draft: Draft) -> None:
    """Add the content ``text`` of one INI inventory ``file`` to ``draft``."""
    name, kind = UNGROUPED, "hosts"
    layer: dict[str, Value] = {}
    # The section of a child group may follow the section of a parent group.
    later: dict[str, list[tuple[str, Origin]]] = {}
    for number, raw in enumerate(text.splitlines(), start=1):
        line, origin = raw.strip(), Origin(file, number)
        if not line or line[0] in "#;":
            continue
        if line[0] == "[" and (_SECTION.fullmatch(line) or line.endswith("]") or _UNFINISHED.fullmatch(line)):
            name, kind = _section(line, origin, draft)
            if kind == "vars":
                layer = {}
                draft.groups[name].layers.append(layer)
            else:
                _join(name, later.pop(name, []), draft)
        elif kind == "vars":
            _variable(line, name, layer, origin, draft)
        elif kind == "children":
            child = line.split("#")[0].strip()
            if child in draft.groups:
                _join(child, [(name, origin)], draft)
            else:
                later.setdefault(child, []).append((name, origin))
        else:
            _host(line, draft.group(name, origin), origin, draft)
    for child, parents in later.items():
        _join(child, parents, draft)


def _join(child: str, parents: list[tuple[str, Origin]], draft: Draft) -> None:
    for parent, origin in parents:
        draft.groups[parent].children[child] = origin
        draft.mention(child, origin)


def _section(line: str, origin: Origin, draft: Draft) -> tuple[str, str]:
    match = _SECTION.fullmatch(line)
    if match is None or match["kind"] not in (None, "hosts", "vars", "children"):
        draft.fail(origin, f"found {line[:60]!r}, expected [group], [group:children] or [group:vars]")
        return UNGROUPED, "hosts"
    name, kind = match["name"].strip(), match["kind"] or "hosts"
    if kind == "vars":
        draft.mention(name, origin)
    else:
        draft.group(name, origin)
    return name, kind


def _variable(line: str, group: str, layer: dict[str, Value], origin: Origin, draft: Draft) -> None:
    name, sign, text = (part.strip() for part in line.partition("="))
    if not sign or not name:
        draft.fail(origin, f"found {line[:60]!r}, expected name=value")
        return
    layer[name] = Value(concealed(name, _literal(text)), origin, group_level(group))


def _host(line: str, group: GroupDraft, origin: Origin, draft: Draft) -> None:
    try:
        pattern, *settings = line.split() if _PLAIN_LINE.fullmatch(line) else shlex.split(line, comments=True)
    except ValueError as error:
        draft.fail(origin, f"{error}; quote values as a shell would".lower())
        return
    values = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        if not sign or not name:
            draft.fail(origin, f"found {setting[:60]!r} after the host's name, expected name=value")
        else:
            values[name] = Value(concealed(name, _literal(text)), origin, HOST_LEVEL)
    if pattern in group.hosts and values:
        draft.notes.append(
            f"{origin.exact}: {pattern} is listed twice in this group, and the variables of the later line win; "
            "for several hosts at one address, give each its own name and set ansible_host"
        )
    draft.add_hosts(group, pattern, values, origin)


def _literal(text: str) -> Any:
    if not text or len(text) > _MAX_LITERAL or _WORD.fullmatch(text):
        return text
    if _DIGITS.fullmatch(text):
        return int(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, (bool, int, str, list, dict)) or value is None else text
