"""Text of ``hostwright --help``, which lists verbs by purpose, and of the help for one verb."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from invoke import Collection, Task
from invoke.parser import ParserContext
from invoke.util import helpline

from hostwright.cli.shell.advice import completed
from hostwright.cli.shell.words import bare_option

_OURS = "hostwright.cli.tasks."
_OF_ROLES = "hostwright_tasks_of_"  #: prefix of module names under which ``tasks.ofroles`` imports the tasks of roles
#: modules with verbs, in the order of the help text
_ORDER = (
    "begin",
    "look",
    "site",
    "change",
    "restore",
    "keep",
)
_SITE = "Of this site"
SITE = "the site: a directory with inventory/ and tasks.py (default: the nearest one, searching upwards)"
#: options that may stand without a verb, and their descriptions in the help text
_OPTIONS = (
    ("--help [VERB]", "show this help, or the help of a verb"),
    ("--list", "list the verbs by name"),
    ("--site DIR", SITE),
    ("--version", "show the version"),
)
_MORE = (
    "`hostwright --help VERB` explains a verb, with options and examples. HOST is gpu01, gpu[03-09], @group, all, or "
    "another value of --hosts. `hostwright completion bash` (or zsh, fish) prints the completion script for a shell."
)
_PAUSE = re.compile(r"[.:;](?:\s|$)")
_INDENT, _GAP = 2, 3
_NARROW = 24  #: minimum width in columns of a description in the help text


def overview(verbs: Collection) -> str:
    """Return the text of ``hostwright --help``: all verbs by purpose, and the options that may precede a verb."""
    groups = {title: [(name, sentence(task)) for name, task in found] for title, found in by_purpose(verbs).items()}
    width = max(len(name) for pairs in groups.values() for name, _ in pairs)
    lines = ["Usage: hostwright VERB [HOST …] [--options]", ""]
    for title, pairs in groups.items():
        lines += [f"{title}:", *_columns(pairs, width), ""]
    lines += ["Options:", *_columns(_OPTIONS, width), ""]
    lines += textwrap.wrap(_MORE, _columns_left())
    return "\n".join(lines)


def of_verb(name: str, task: Task[Any], context: ParserContext) -> str:
    """Return the help of the verb ``name``: description, arguments, options and examples."""
    bare = bare_option(context)
    words = {"hosts": " [HOST …]", "host": " [HOST]", "run": " [RUN]"}.get(bare.name or "", "") if bare else ""
    needed = "".join(f" {each.name.upper()}" for each in context.positional_args if each.name)
    text, examples = split(task)
    text = completed(text)
    tuples = [(flag, completed(help_text or "")) for flag, help_text in context.help_tuples()]
    lines = [f"Usage: hostwright {name}{needed}{words}{' [--options]' if tuples else ''}", ""]
    lines += [*textwrap.wrap(text, _columns_left()), ""] if text else []
    if examples:
        lines += ["Examples:" if len(examples) > 1 else "Example:", *(f"  {one}" for one in examples), ""]
    if tuples:
        lines += ["Options:", *_columns(tuples, min(30, max(len(flag) for flag, _ in tuples)))]
    return "\n".join(lines).rstrip()


def split(task: Task[Any]) -> tuple[str, list[str]]:
    """Return the two parts of a verb's docstring: description, and examples (lines that begin with ``hostwright``)."""
    lines = (inspect.getdoc(task) or "").splitlines()
    examples = [line.strip() for line in lines if line.strip().startswith("hostwright ")]
    return " ".join(line.strip() for line in lines if line.strip() and line.strip() not in examples), examples


def by_purpose(verbs: Collection) -> dict[str, list[tuple[str, Task[Any]]]]:
    """Return title → names and verbs, for each group of verbs, in the order of the help text."""
    groups: dict[str, list[tuple[str, Task[Any]]]] = {}
    for name, task in sorted(_tasks(verbs), key=lambda pair: _place(pair[1])):
        groups.setdefault(_title(task), []).append((name, task))
    return groups


def sentence(task: Task[Any]) -> str:
    """Return the beginning of a verb's docstring, up to the first period, colon or semicolon."""
    return _PAUSE.split(helpline(task) or "")[0]


def _tasks(verbs: Collection) -> Iterator[tuple[str, Task[Any]]]:
    for name, aliases in verbs.task_names.items():
        yield min((name, *aliases), key=len), verbs[name]


def _body(task: Task[Any]) -> Any:
    return inspect.unwrap(task.body)


def _module(task: Task[Any]) -> str:
    return str(_body(task).__module__)


def _place(task: Task[Any]) -> tuple[int, str, int]:
    module = _module(task)
    name = module.removeprefix(_OURS)
    if module.startswith(_OURS):
        rank = _ORDER.index(name) if name in _ORDER else len(_ORDER)
    else:
        rank = len(_ORDER) + (1 if module.startswith(_OF_ROLES) else 2)
    return rank, module, _body(task).__code__.co_firstlineno


def _title(task: Task[Any]) -> str:
    module = _module(task)
    if module.startswith(_OF_ROLES):
        return f"Of the role {Path(_body(task).__code__.co_filename).parent.name}"
    return str(getattr(sys.modules.get(module), "TITLE", "More")) if module.startswith(_OURS) else _SITE


def columns(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield lines with the name and the text of each pair. All texts begin in the same column."""
    yield from _columns(pairs, max((len(name) for name, _ in pairs), default=0))


def _columns_left(taken: int = 0) -> int:
    return max(_NARROW, shutil.get_terminal_size().columns - taken - 1)


def _columns(pairs: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    indent = " " * (_INDENT + width + _GAP)
    room = _columns_left(len(indent))
    for name, text in pairs:
        first, *rest = textwrap.wrap(text, room) or [""]
        begin = f"{' ' * _INDENT}{name:<{width}}"
        if len(name) > width:
            yield begin
            begin = " " * (_INDENT + width)
        yield f"{begin}{' ' * _GAP}{first}".rstrip()
        yield from (indent + line for line in rest)
