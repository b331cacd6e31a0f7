"""The catalogue: every state that roles may yield, found by walking this package, with what its docstring says of it.

A state is a dataclass with ``probes``, ``plan`` and ``removal``, a condition one with ``probes`` and ``holds``; a class
whose name begins with ``_`` is not for roles. A module whose name ends in ``_gone`` holds states that only the
``removal()`` of others yields.
"""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import typing
from collections.abc import Iterator
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

import hostwright.resources as package
from hostwright.plan.model import Condition, Resource
from hostwright.plan.roles.meanings import meanings

GONE = "_gone"  #: how the names of modules end whose states are those of a removal


@dataclass(frozen=True)
class CatalogueEntry:
    """A class of states or conditions, or of values that one of them takes."""

    cls: type

    @property
    def name(self) -> str:
        """Its name, which is that of the class."""
        return self.cls.__name__

    @property
    def module(self) -> str:
        """The module that defines it."""
        return self.cls.__module__

    @property
    def family(self) -> str:
        """The part of the package that it belongs to: ``files``, ``conditions``."""
        return self.module.removeprefix(f"{package.__name__}.").partition(".")[0]

    @property
    def is_state(self) -> bool:
        """Whether it is a state, which plans something."""
        return issubclass(self.cls, Resource)

    @property
    def is_condition(self) -> bool:
        """Whether it is a condition, which holds on a host or does not."""
        return issubclass(self.cls, Condition)

    @property
    def of_a_removal(self) -> bool:
        """Whether only the ``removal()`` of other states yields it."""
        return self.is_state and self.module.endswith(GONE)

    @cached_property
    def _parts(self) -> list[str | doctest.Example]:
        return doctest.DocTestParser().parse(inspect.getdoc(self.cls) or "", self.name)

    @property
    def meaning(self) -> str:
        """The docstring without its example."""
        return "".join(part for part in self._parts if isinstance(part, str)).strip()

    @property
    def sentence(self) -> str:
        """The first sentence of the docstring: the state in words."""
        return " ".join(self.meaning.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."

    @property
    def examples(self) -> tuple[doctest.Example, ...]:
        """The example's lines with what each prints."""
        return tuple(part for part in self._parts if isinstance(part, doctest.Example))

    @cached_property
    def fields(self) -> tuple[tuple[Field[Any], str], ...]:
        """Each field with its meaning."""
        known = meanings(self.cls)
        return tuple((field, known.get(field.name, "")) for field in fields(self.cls))

    def values(self) -> Iterator[CatalogueEntry]:
        """The classes of this package that fields take and that are no states or conditions, each once."""
        hints = typing.get_type_hints(self.cls)
        named = (cls for field in fields(self.cls) for cls in _classes(hints[field.name]))
        for cls in dict.fromkeys(named):
            entry = CatalogueEntry(cls)
            ours = is_dataclass(cls) and cls.__module__.startswith(package.__name__)
            if ours and not entry.is_state and not entry.is_condition:
                yield entry


def default_of(field: Field[Any]) -> Any:
    """A field's default; ``MISSING`` where it must be given."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def modules() -> Iterator[ModuleType]:
    """All modules of the package, in the order of their names."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield import_module(module.name)


def entries() -> tuple[CatalogueEntry, ...]:
    """Every state and condition of the package, by name."""
    candidates = (CatalogueEntry(cls) for module in modules() for cls in vars(module).values() if _is_of(cls, module))
    return tuple(
        sorted((entry for entry in candidates if entry.is_state or entry.is_condition), key=lambda entry: entry.name)
    )


def _is_of(value: object, module: ModuleType) -> bool:
    """Whether a value of a module is a public dataclass that is defined there."""
    if not isinstance(value, type) or not is_dataclass(value):
        return False
    return value.__module__ == module.__name__ and not value.__name__.startswith("_")


def _classes(hint: Any) -> Iterator[type]:
    """The classes in an annotation such as ``tuple[Part, ...] | None``."""
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for argument in typing.get_args(hint):
        yield from _classes(argument)
