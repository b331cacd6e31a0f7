"""docs/resources.md, from the docstrings of states: ``python -m hostwright.resources.document`` writes it.

Each state has a section whose heading is its name, with what a role imports, what the state means, its fields, and an
example that is run as a test.
"""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field
from importlib import import_module
from typing import Any

import hostwright.resources as package
from hostwright.common.text import markdown
from hostwright.plan.roles.site import STANDARD
from hostwright.resources.catalogue import CatalogueEntry, default_of, entries

DOCUMENT = "docs/resources.md"
FAMILIES = ("files", "packages", "python", "system", "conditions")  #: in the order of the page
REMOVAL = "States of a removal"
PIPE = r"\|"  #: a ``|`` in a cell of a table

INTRO = """\
# Resources

*For authors of roles who look for the state that says what they want of a host.*

A resource is one desired state of a host. A [role](roles.md) yields those of its layer; Hostwright asks the host about
each of them, shows what differs, and changes that and nothing else. These are the states that any role may use; what
only one layer needs is in the folder of its role.

A section says

- what is so on a host that is in this state, what the change does to the host and to running work, and what stays when
  the role is removed;
- what a role gives: a field without a default is required. Paths are absolute paths on the host, `Artifact` is a file
  of the stack;
- what a plan shows. The examples are run as tests: `plan_text` of `hostwright.plan.testing` prints the plan of a host,
  given its answers. Each answer is named by a part of the question; to a question that is not named the host answers
  like one that has nothing of it. The diffs that a plan shows as well are left out.

This page is written by `python -m hostwright.resources.document` from the docstrings of the resources.
"""


def document(entries: Iterable[CatalogueEntry]) -> str:
    """The page that describes these states and conditions, as Markdown."""
    return "\n".join(_parts(tuple(entries)))


def main() -> None:
    """Write the page."""
    (STANDARD.parents[1] / DOCUMENT).write_text(document(entries()), "utf-8")


def _parts(entries: tuple[CatalogueEntry, ...]) -> Iterator[str]:
    groups = {
        family: [entry for entry in entries if entry.family == family and not entry.of_a_removal] for family in FAMILIES
    }
    yield INTRO
    yield "## Contents\n"
    for family, group in groups.items():
        yield "\n".join([f"**[{_title(family)}](#{family})**\n", *map(_link, group)]) + "\n"
    yield f"**[{REMOVAL}](#{REMOVAL.lower().replace(' ', '-')})**\n"
    for family, group in groups.items():
        yield f"## {_title(family)}\n"
        yield f"{markdown(_about(family))}\n"
        yield from (_section(entry) for entry in group)
    yield from _removals([entry for entry in entries if entry.of_a_removal])


def _title(family: str) -> str:
    return family.capitalize()


def _about(family: str) -> str:
    """The first line of the docstring of a family."""
    return (inspect.getdoc(import_module(f"{package.__name__}.{family}")) or "").partition("\n")[0]


def _link(entry: CatalogueEntry) -> str:
    return f"- [{entry.name}](#{entry.name.lower()}): {markdown(entry.sentence)}"


def _section(entry: CatalogueEntry) -> str:
    """One state or condition: what is imported, its meaning, its fields, its example."""
    parts = [
        f"### `{entry.name}`",
        f"```python\nfrom {package.__name__} import {entry.name}\n```",
        _prose(entry.meaning),
    ]
    parts += _tables(entry)
    for value in entry.values():
        parts += [f"`{value.name}`, of the same module: {_prose(value.meaning)}", *_tables(value)]
    if entry.examples:
        parts.append(
            "\n".join(["```pycon", *(line for example in entry.examples for line in _example(example)), "```"])
        )
    return "\n\n".join(parts) + "\n"


def _prose(text: str) -> str:
    """Paragraphs of a docstring, each in one line as GitHub joins them; lists stay lists."""
    paragraphs = (re.sub(r"\n(?!- )", " ", paragraph) for paragraph in text.split("\n\n"))
    return "\n\n".join(markdown(re.sub(r" {2,}", " ", paragraph)) for paragraph in paragraphs)


def _tables(entry: CatalogueEntry) -> list[str]:
    rows = [_row(field, meaning) for field, meaning in entry.fields]
    return ["\n".join(["| field | type | default | meaning |", "|---|---|---|---|", *rows])] if rows else []


def _row(field: Field[Any], meaning: str) -> str:
    default = default_of(field)
    shown = "" if default is MISSING else f"`{_literal(default)}`"
    cells = (f"`{field.name}`", f"`{field.type}`", shown, markdown(meaning))
    return f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |"


def _literal(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else repr(default)


def _example(example: doctest.Example) -> Iterator[str]:
    """A line of an example as it is typed, and what it prints."""
    if example.source.startswith("from hostwright.plan.testing "):
        return
    first, *more = example.source.splitlines()
    yield f">>> {first}"
    yield from (f"... {line}" for line in more)
    yield from example.want.splitlines()


def _removals(entries: list[CatalogueEntry]) -> Iterator[str]:
    yield f"## {REMOVAL}\n"
    yield (
        "What `invoke remove` brings a host to. Roles do not yield these: the `removal()` of the states above does, "
        "and so may that of a role's own state.\n"
    )
    yield "\n".join(f"- `{entry.name}` (`{entry.module}`): {markdown(entry.sentence)}" for entry in entries) + "\n"


if __name__ == "__main__":
    main()
