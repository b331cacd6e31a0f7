"""Generator of docs/resources.md, from the docstrings of states. Run ``python -m hostwright.resources.document``.

Each public state of ``hostwright.resources`` has a section: the import, the meaning, the fields, and an example that is
a test.
"""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import hostwright.resources as package
from hostwright.common.text import markdown
from hostwright.plan.model import Condition, RemovalState, Resource
from hostwright.plan.roles.meanings import meanings
from hostwright.plan.roles.site import STANDARD

DOCUMENT = "docs/resources.md"
#: subpackages with resources, in the order of docs/resources.md
FAMILIES = ("files", "packages", "python", "system", "conditions")
REMOVAL = "States of a removal"
PIPE = r"\|"

INTRO = """\
# Resources

*For authors of roles who need a state for their host.*

A resource is one desired state of a host. A [role](roles.md) yields the resources of its layer. Hostwright probes the
host for each resource, shows the differences, and changes only these. Any role may use the states on this page; a state
that only one layer needs is in the folder of its role.

Each section describes

- the state itself, the effects of the change on the host and on running work, and what remains after the role is
  removed;
- the fields: a field without a default is required. Paths are absolute paths on the host. An `Artifact` is a file of
  the stack;
- the plan, as an example that is run as a test. `plan_text` of `hostwright.plan.testing` prints the plan of a host for
  the given probe answers. The key of each answer is a part of the probe's script. A probe without an answer fails, as
  on a new host. The examples leave out the diffs of a plan.

`python -m hostwright.resources.document` generates this page from the docstrings of the resources.
"""


def document(entries: Iterable[CatalogueEntry]) -> str:
    """Markdown page that describes the states and conditions in ``entries``."""
    return "\n".join(_parts(tuple(entries)))


def main() -> None:
    """Write docs/resources.md."""
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
    return (inspect.getdoc(import_module(f"{package.__name__}.{family}")) or "").partition("\n")[0]


def _link(entry: CatalogueEntry) -> str:
    return f"- [{entry.name}](#{entry.name.lower()}): {markdown(entry.sentence)}"


def _section(entry: CatalogueEntry) -> str:
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
    first, *more = example.source.splitlines()
    yield f">>> {first}"
    yield from (f"... {line}" for line in more)
    yield from example.want.splitlines()


def _removals(entries: list[CatalogueEntry]) -> Iterator[str]:
    yield f"## {REMOVAL}\n"
    yield (
        "The states of a host after `invoke remove`. Roles do not yield them: the `removal()` methods of the states "
        "above do, and a role's own state may too.\n"
    )
    yield "\n".join(f"- `{entry.name}` (`{entry.module}`): {markdown(entry.sentence)}" for entry in entries) + "\n"


@dataclass(frozen=True)
class CatalogueEntry:
    """A class of states, of conditions, or of values for their fields."""

    cls: type

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.cls.__name__

    @property
    def module(self) -> str:
        """Module that defines the class."""
        return self.cls.__module__

    @property
    def family(self) -> str:
        """Module or subpackage of ``hostwright.resources`` that contains the class, such as ``conditions``."""
        return self.module.removeprefix(f"{package.__name__}.").partition(".")[0]

    @property
    def is_state(self) -> bool:
        """Whether the class is a state."""
        return issubclass(self.cls, Resource)

    @property
    def is_condition(self) -> bool:
        """Whether the class is a condition."""
        return issubclass(self.cls, Condition)

    @property
    def of_a_removal(self) -> bool:
        """Whether only the ``removal()`` of other states returns this state."""
        return issubclass(self.cls, RemovalState)

    @cached_property
    def _parts(self) -> list[str | doctest.Example]:
        return doctest.DocTestParser().parse(inspect.getdoc(self.cls) or "", self.name)

    @property
    def meaning(self) -> str:
        """The docstring without its example."""
        return "".join(part for part in self._parts if isinstance(part, str)).strip()

    @property
    def sentence(self) -> str:
        """The first sentence of the docstring."""
        return " ".join(self.meaning.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."

    @property
    def examples(self) -> tuple[doctest.Example, ...]:
        """Lines of the example, each with its expected output."""
        return tuple(part for part in self._parts if isinstance(part, doctest.Example))

    @cached_property
    def fields(self) -> tuple[tuple[Field[Any], str], ...]:
        """Each field with the text of its ``#:`` comment."""
        known = meanings(self.cls)
        return tuple((field, known.get(field.name, "")) for field in fields(self.cls))

    def values(self) -> Iterator[CatalogueEntry]:
        """Entries of the dataclasses that occur as types of this class's fields, except states and conditions."""
        hints = typing.get_type_hints(self.cls)
        named = (cls for field in fields(self.cls) for cls in _classes(hints[field.name]))
        for cls in dict.fromkeys(named):
            entry = CatalogueEntry(cls)
            ours = is_dataclass(cls) and cls.__module__.startswith(package.__name__)
            if ours and not entry.is_state and not entry.is_condition:
                yield entry


def default_of(field: Field[Any]) -> Any:
    """Default of a field; ``MISSING`` if the field is required."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def modules() -> Iterator[ModuleType]:
    """All modules of ``hostwright.resources``, sorted by name."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield import_module(module.name)


def entries() -> tuple[CatalogueEntry, ...]:
    """Entries of all states and conditions in ``hostwright.resources``, sorted by name."""
    candidates = (CatalogueEntry(cls) for module in modules() for cls in vars(module).values() if _is_of(cls, module))
    return tuple(
        sorted((entry for entry in candidates if entry.is_state or entry.is_condition), key=lambda entry: entry.name)
    )


def _is_of(value: object, module: ModuleType) -> bool:
    if not isinstance(value, type) or not is_dataclass(value):
        return False
    return value.__module__ == module.__name__ and not value.__name__.startswith("_")


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from _classes(argument)


if __name__ == "__main__":
    main()
