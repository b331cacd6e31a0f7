"""What may be meant by text that is no YAML, or other YAML than is wanted: the end of a sentence about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import yaml

_HINTS = {
    "mapping values are not allowed": "quote a value that holds ': ', and check the indentation",
    "could not find expected ':'": "expected 'name: value'",
    "did not find expected key": "expected 'name: value' at the indentation of its neighbours",
    "did not find expected '-' indicator": "expected '- value' at the indentation of its neighbours",
    "found unexpected end of stream": "a quote or bracket is not closed",
    "found another document": "expected one document; a second one begins at '---'",
}
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>\S+)")
_WORD = re.compile(r"[\w.@-]+")


def hint(problem: str, lines: Sequence[str], number: int, column: int) -> str:
    """What to do about a line that cannot be parsed; ``number`` and ``column`` count from 0. Empty where nobody knows.

    >>> hint("mapping values are not allowed in this context", ["rack3", "  hosts: {}"], 1, 7)
    'the line above lacks a colon: `rack3:`'
    """
    line = lines[number] if number < len(lines) else ""
    if line[column : column + 1] == "\t" or "\t" in line[: _depth(line)]:
        return "indent with spaces, not with a tab"
    if "mapping values" in problem and (word := _word_above(lines, number)):
        return f"the line above lacks a colon: `{word}:`"
    return next((hint for sign, hint in _HINTS.items() if sign in problem), "")


def assigned(node: yaml.Node) -> str:
    """For ``name=value``, as INI has it: what that is in YAML, else an empty text."""
    found = _ASSIGNED.fullmatch(node.value) if isinstance(node, yaml.ScalarNode) else None
    return f": `{found['name']}: {found['value']}`" if found else ""


def _word_above(lines: Sequence[str], number: int) -> str:
    """The word that alone is the line before this one, where this one is deeper: a key without its colon."""
    above = next((line for line in reversed(lines[:number]) if line.strip()), "")
    deeper = number < len(lines) and _depth(lines[number]) > _depth(above)
    return above.strip() if deeper and _WORD.fullmatch(above.strip()) else ""


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
