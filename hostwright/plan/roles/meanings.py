"""Reads descriptions of a dataclass's fields, for documents and help: the ``#:`` comments in the class's source.

A comment is at the end of the field's line, or on the lines before it. Python discards comments, so this module parses
the source.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Mapping

_MARK = "#:"


def meanings(cls: type) -> dict[str, str]:
    """Return field → description for the fields that ``cls`` itself defines. Without a comment, the description is
    empty.
    """
    source = textwrap.dedent(inspect.getsource(cls))
    (definition,) = ast.parse(source).body
    comments = _comments(source)
    code = {token.start[0] for token in _tokens(source) if token.type in {tokenize.NAME, tokenize.OP}}
    texts: dict[str, str] = {}
    for node in definition.body if isinstance(definition, ast.ClassDef) else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = node.lineno - 1
            while above in comments and above not in code:
                above -= 1
            lines = [*range(above + 1, node.lineno), *range(node.lineno, (node.end_lineno or node.lineno) + 1)]
            texts[node.target.id] = " ".join(comments[line] for line in lines if line in comments)
    return texts


def _comments(source: str) -> Mapping[int, str]:
    texts = (token for token in _tokens(source) if token.type == tokenize.COMMENT and token.string.startswith(_MARK))
    return {token.start[0]: token.string.removeprefix(_MARK).strip() for token in texts}


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(source).readline))
