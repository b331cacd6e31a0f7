"""Roles: functions that yield resources from typed variables and the stack.

A role is a folder in ``roles/`` whose ``__init__.py`` holds one ``@role`` function; what else is known of the layer
stands in modules of known names beside it (``Role.part``). There is nothing to register: ``discover`` reads the
package, and the order follows from ``needs``.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from graphlib import CycleError, TopologicalSorter
from types import ModuleType
from typing import Any, TypeVar

from hostwright.common.errors import InputError
from hostwright.common.templates import render
from hostwright.plan.auditvalue import AuditValue
from hostwright.plan.model import Resource
from hostwright.stack.stack import Section, Share, Stack

V = TypeVar("V")
S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a role is told beside its own variables: all else that is wanted of the host.

    ``force`` is the operator's word that what uses the host may be disturbed, and ended. ``roles`` are all roles of the
    host with their variables, in order, also those that are not looked at now.
    """

    stack: Stack
    force: bool = False
    roles: tuple[tuple[Role, Any], ...] = ()

    @property
    def audit_values(self) -> tuple[AuditValue, ...]:
        """What audits compare of the host: the values that its roles give in their ``audit.py``."""
        told = replace(self, roles=())  # values are not made of values
        parts = ((role, variables, role.part("audit")) for role, variables in self.roles)
        return tuple(
            replace(value, layer=role.name)
            for role, variables, part in parts
            if part
            for value in part.audit_values(variables, told)
        )

    def section(self, kind: type[S]) -> S:
        """The stack's section of that kind (``CudaSection``): the role's own, or that of a role that it needs."""
        return self.stack.section(kind)

    def shares(self) -> tuple[Share, ...]:
        """The disk space that the layers of the host take."""
        return tuple(share for section in self.stack.sections.values() for share in section.shares(self.stack))

    def render(self, template: str, /, **values: Any) -> str:
        """The text of a template (``cuda/ld.conf.j2``) with these values; mistakes are an ``InputError``."""
        return render(template, **values)


@dataclass(frozen=True, slots=True)
class Role:
    """One layer of the stack: its name, the roles before it, its typed variables, and its resources.

    The roles that it ``needs`` must be on a host that has it; those that it comes ``after`` go before it where they are
    there.
    """

    name: str
    needs: tuple[str, ...]
    variables: type[Any]
    function: Callable[[Any, Wanted], Iterator[Resource]]
    summary: str
    after: tuple[str, ...] = ()

    def resources(self, variables: Any, host: Wanted) -> tuple[Resource, ...]:
        """The desired states of this layer on a host with these variables."""
        return tuple(self.function(variables, host))

    @property
    def follows(self) -> tuple[str, ...]:
        """The roles that go before it, for either reason."""
        return tuple(dict.fromkeys((*self.needs, *self.after)))

    def part(self, name: str) -> ModuleType | None:
        """The module of that name in the role's folder (``failures``, ``rules``, …); ``None`` where there is none."""
        folder = self.function.__module__
        if not hasattr(importlib.import_module(folder), "__path__"):  # a role that was defined in a single file
            return None
        full = f"{folder}.{name}"
        return importlib.import_module(full) if importlib.util.find_spec(full) else None

    @property
    def section(self) -> type[Section] | None:
        """The model of the role's part of a stack, out of its module ``section``; ``None`` where it has none."""
        module = self.part("section")
        if module is None:
            return None
        kinds = {one for one in vars(module).values() if isinstance(one, type) and issubclass(one, Section)} - {Section}
        own = [one for one in kinds if one.__module__ == module.__name__] or list(kinds)  # else that of another role
        if len(own) != 1:
            found = ", ".join(sorted(one.__name__ for one in own)) or "none"
            place = f"roles/{self.name}/section.py"
            raise InputError(f"expected one class that derives from Section, found {found}", place)
        return own[0]


def role(
    *, needs: Iterable[str] = (), after: Iterable[str] = ()
) -> Callable[[Callable[[V, Wanted], Iterator[Resource]]], Role]:
    """Make a role of a function ``(variables, host) -> Iterator[Resource]``.

    ``needs`` are roles without which it cannot be on a host, ``after`` others that go before it. The role's name is the
    function's; the type of its variables is read from the first parameter's annotation, which must be a frozen
    dataclass whose fields all have defaults.
    """

    def decorate(function: Callable[[V, Wanted], Iterator[Resource]]) -> Role:
        hints = typing.get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters))
        variables = hints[first]
        if not is_dataclass(variables):
            raise TypeError(f"role {function.__name__}: the first parameter must be annotated with a dataclass")
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        kind = typing.cast(type[Any], variables)
        return Role(function.__name__, tuple(needs), kind, function, summary, tuple(after))

    return decorate


def sections_of(roles: Iterable[Role]) -> dict[str, type[Section] | None]:
    """The models of these roles' sections, as stack files are read with them."""
    return {role.name: role.section for role in roles}


def discover(package: str = "hostwright.standard.roles") -> tuple[Role, ...]:
    """All roles of a package, each after those that it needs; ties in alphabetical order."""
    found: dict[str, Role] = {}
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
        module = importlib.import_module(f"{package}.{info.name}")
        found.update({value.name: value for value in vars(module).values() if isinstance(value, Role)})
    return in_order(found)


def in_order(roles: Mapping[str, Role]) -> tuple[Role, ...]:
    """The roles sorted so that each comes after those that go before it. An unknown need or a circle is an error.

    Raises ``InputError``.
    """
    for one in roles.values():
        for need in one.needs:
            if need not in roles:
                raise InputError(f"role {one.name} needs {need}, and there is no such role", f"roles/{one.name}/")
    before = {name: sorted(other for other in roles[name].follows if other in roles) for name in sorted(roles)}
    sorter: TopologicalSorter[str] = TopologicalSorter(before)
    try:
        sorter.prepare()
    except CycleError as error:
        raise InputError(f"roles follow each other in a circle: {' → '.join(error.args[1])}", "roles/") from error
    order: list[Role] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += [roles[name] for name in ready]
        sorter.done(*ready)
    return tuple(order)
