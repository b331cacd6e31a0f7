"""Roles: functions that yield resources from typed variables and the stack.

A role is a folder in ``roles/`` whose ``__init__.py`` has one ``@role`` function; modules with fixed names in the
folder contain further information (``Role.part``). Roles need no registration: ``discover`` finds all roles in a Python
package, and orders them by their ``needs``. The standard roles are one package, a site's roles another.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from graphlib import CycleError
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from hostwright.common.errors import InputError, Mistakes, described
from hostwright.common.input.nearest import suggestion
from hostwright.common.templates import STANDARD, render
from hostwright.plan.model import Resource
from hostwright.plan.roles.auditvalue import AuditValue
from hostwright.plan.roles.layers import in_sequence
from hostwright.plan.roles.site import OWN_ROLES, STANDARD_ROLES
from hostwright.stack.ages import FILE as ADVISORIES
from hostwright.stack.ages import Advisories, read_advisories
from hostwright.stack.fitting import RoleRules
from hostwright.stack.stack import AptRepository, Section, Share, Stack

V = TypeVar("V")
S = TypeVar("S", bound=Section)

#: names of the modules that Hostwright imports from a role's folder
Part = Literal["audit", "failures", "found", "gpus", "occupancy", "proofs", "rules", "section"]
PARTS: tuple[Part, ...] = typing.get_args(Part)
EVERY = "*"  #: entry of ``after`` that stands for all other roles of the host


@dataclass(frozen=True, slots=True)
class RoleContext:
    """Information about a host for a role's function, besides the role's own variables.

    ``force`` is whether running work may be ended (``--force``). ``roles`` are all roles of the host with their
    variables, also those that ``--roles`` excludes. ``templates`` are the folders with templates. ``gpus`` is the
    number of GPUs in the inventory, or ``None``.
    """

    stack: Stack
    force: bool = False
    roles: tuple[tuple[Role, Any], ...] = ()
    templates: tuple[Path, ...] = (STANDARD,)
    gpus: int | None = None

    @property
    def audit_values(self) -> tuple[AuditValue, ...]:
        """The values of all the host's roles that audits compare."""
        return tuple(
            replace(value, layer=role.name)
            for role, variables in self.roles
            for value in role.audit_values(variables, self)
        )

    def section(self, kind: type[S]) -> S:
        """Return the stack's section of the type ``kind`` (``ChronySection``), of the role or of a role that it
        needs.
        """
        return self.stack.section(kind)

    def find(self, kind: type[S]) -> S | None:
        """Return the stack's section of the type ``kind``; ``None`` if the host lacks the role with this section."""
        return next((section for section in self.sections.values() if isinstance(section, kind)), None)

    @property
    def sections(self) -> Mapping[str, Section]:
        """Role name → the role's section in the stack, for the host's roles."""
        of_host = [role.name for role, _ in self.roles] or list(self.stack.sections)
        return {name: section for name, section in self.stack.sections.items() if name in of_host}

    def shares(self) -> tuple[Share, ...]:
        """Return the disk space that the host's roles need, by directory."""
        return tuple(share for section in self.sections.values() for share in section.shares(self.stack))

    def leaving(self) -> tuple[str, ...]:
        """Return shell patterns for packages that the host's roles remove. A leading ``!`` excludes packages."""
        patterns = [pattern for section in self.sections.values() for pattern in section.leaving()]
        return tuple(sorted(patterns, key=lambda pattern: not pattern.startswith("!")))

    def repositories(self) -> tuple[AptRepository, ...]:
        """Return the signed apt repositories of the host's roles."""
        return tuple(one for section in self.sections.values() for one in section.repositories())

    def never_unattended(self) -> tuple[str, ...]:
        """Return the packages of the host's roles that unattended-upgrades must not change."""
        return tuple(name for section in self.sections.values() for name in section.never_unattended())

    def render(self, template: str, /, **values: Any) -> str:
        """Render the template ``template`` (``chrony/chrony.conf.j2``) with ``values``. Raises ``InputError`` if that
        fails.
        """
        return render(template, self.templates, **values)


@dataclass(frozen=True, slots=True)
class Role:
    """A role, a layer of the stack: its name, the roles that precede it, its typed variables, and its resources.

    A host with the role must also have the roles in ``needs``. Roles in ``after`` precede this role if the host has
    them. A role that ``provides`` another role satisfies ``needs`` and ``after`` in place of that role. The role's code
    imports only from roles in ``needs`` and ``uses``. If the role ``extends`` another role, the rules, failures and
    audit values of both roles apply, and missing modules come from the other role's folder.
    """

    name: str
    needs: tuple[str, ...]
    variables: type[Any]
    function: Callable[[Any, RoleContext], Iterator[Resource]]
    summary: str
    after: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    extends: Role | None = None
    short: str = ""  #: heading of the role in narrow columns; empty for a heading made from the name
    provides: tuple[str, ...] = ()

    def resources(self, variables: Any, ctx: RoleContext) -> tuple[Resource, ...]:
        """Return the desired states of this role on a host. Raises ``InputError`` if the role's function yields other
        objects.
        """
        try:
            states = tuple(self.function(variables, ctx))
        except SystemExit as error:  # ``SystemExit`` would end the command silently.
            raise InputError(described(error), place_of(error, str(self.folder))) from error
        for state in states:
            if not isinstance(state, Resource):
                sentence = f"the role {self.name} yields {state!r}, which is not a state; yield instances of Resource"
                raise InputError(sentence, str(self.folder))
        return states

    @property
    def follows(self) -> tuple[str, ...]:
        """The names of all roles that precede this role: ``needs`` and ``after``."""
        return tuple(dict.fromkeys((*self.needs, *self.after)))

    @property
    def standard(self) -> bool:
        """Whether this role is one of Hostwright's roles, or extends one."""
        own = self.function.__module__.startswith(f"{STANDARD_ROLES}.")
        return own or (self.extends is not None and self.extends.standard)

    def part(self, name: Part) -> ModuleType | None:
        """Import the module ``name`` from the role's folder, or from the extended role's folder; ``None`` if the module
        is missing.

        Raises ``InputError`` if a site's module cannot be imported.
        """
        return next(iter(self.parts(name)), None)

    def part_name(self, name: Part) -> str:
        """Return the full name of the module that ``part`` would import; empty if the module is missing."""
        own = _part_name(_import(self.function.__module__), name)
        return own or (self.extends.part_name(name) if self.extends else "")

    def parts(self, name: Part) -> tuple[ModuleType, ...]:
        """Import the modules ``name`` from the role's folder and from the extended role's folder.

        Raises ``InputError`` if a site's module cannot be imported.
        """
        own = _part(_import(self.function.__module__), name)
        return *((own,) if own else ()), *(self.extends.parts(name) if self.extends else ())

    def audit_values(self, variables: Any, ctx: RoleContext) -> tuple[AuditValue, ...]:
        """Return the values of this role that audits compare.

        For each name, the role's own values replace the extended role's values.
        """
        own = _part(_import(self.function.__module__), "audit")
        extends = self.extends if self.extends and isinstance(variables, self.extends.variables) else None
        values = tuple(own.audit_values(variables, ctx)) if own else ()
        named = {value.name for value in values}  # Several values may have one name, for different hosts.
        extended = extends.audit_values(variables, ctx) if extends else ()
        return (*(value for value in extended if value.name not in named), *values)

    @property
    def folder(self) -> Path:
        """The folder with the role's modules, or the file of a role without a folder."""
        file = Path(inspect.getfile(self.function))
        return file.parent if file.name == "__init__.py" else file

    @property
    def advisories(self) -> Advisories:
        """The advisories in the role's ``advisories.json``. Raises ``InputError`` if the file is invalid."""
        return _advisories(self.folder / ADVISORIES)

    @property
    def section(self) -> type[Section] | None:
        """The class for the role's section of a stack, from the module ``section``; ``None`` without this module."""
        module = self.part("section")
        return _section(module, self.name) if module else None


@cache
def _part_name(folder: ModuleType, name: str) -> str:
    full = f"{folder.__name__}.{name}"
    return full if hasattr(folder, "__path__") and importlib.util.find_spec(full) else ""


def _part(folder: ModuleType, name: str) -> ModuleType | None:
    full = _part_name(folder, name)
    return _import(full) if full else None


_advisories = cache(read_advisories)


@cache
def _section(module: ModuleType, role: str) -> type[Section]:
    classes = {value for value in vars(module).values() if isinstance(value, type)} - {Section}
    kinds = {kind for kind in classes if issubclass(kind, Section)}
    # A role that defines no section model may import the model of another role.
    own = [kind for kind in kinds if kind.__module__ == module.__name__] or list(kinds)
    if len(own) != 1:
        names = ", ".join(sorted(kind.__name__ for kind in own)) or "none"
        raise InputError(f"expected one subclass of Section, found {names}", f"roles/{role}/section.py")
    return own[0]


def role(
    *,
    needs: Iterable[str] | None = None,
    after: Iterable[str] | None = None,
    uses: Iterable[str] = (),
    extends: Role | None = None,
    short: str = "",
    provides: Iterable[str] = (),
) -> Callable[[Callable[[V, RoleContext], Iterator[Resource]]], Role]:
    """Return a decorator that makes a role of a function ``(variables, ctx) -> Iterator[Resource]``.

    ``needs`` are roles that a host must also have; ``after`` are roles that precede this role if the host has them
    (``EVERY``: all roles). By default, both are copied from the role that this role ``extends``. ``uses`` are other
    roles with sections or tables that the code imports. ``short`` is a column heading of two to four letters, by
    default made from the role's name. ``provides`` are roles that this role can replace.

    The role's name is the function's name. The type of its variables is the annotation of the first parameter: a frozen
    dataclass with defaults for all fields. Raises ``TypeError`` for another annotation.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Motd:
    ...     text: str = "welcome"
    >>> @role(needs=["base"])
    ... def motd(v: Motd, ctx: RoleContext) -> Iterator[Resource]:
    ...     '''The text that people read when they log in.'''
    ...     yield from ()
    >>> motd.name, motd.needs, motd.summary
    ('motd', ('base',), 'The text that people read when they log in.')
    >>> motd.variables()
    Motd(text='welcome')
    """

    def decorate(function: Callable[[V, RoleContext], Iterator[Resource]]) -> Role:
        hints = typing.get_type_hints(function)
        first = next(iter(inspect.signature(function).parameters))
        variables = hints[first]
        if not is_dataclass(variables):
            raise TypeError(f"role {function.__name__}: the first parameter must be annotated with a dataclass")
        summary = (inspect.getdoc(function) or "").partition("\n")[0]
        kind = typing.cast(type[Any], variables)
        before = tuple(needs if needs is not None else extends.needs if extends else ())
        later = tuple(after if after is not None else extends.after if extends else ())
        called = short or (extends.short if extends else "")
        instead = (*provides, *(extends.provides if extends else ()))
        return Role(function.__name__, before, kind, function, summary, later, tuple(uses), extends, called, instead)

    return decorate


def sections_of(roles: Iterable[Role]) -> dict[str, type[Section] | None]:
    """Return role name → class for the role's section in stack files; ``None`` for a role without a section."""
    return {role.name: role.section for role in roles}


def rules_of(roles: Iterable[Role]) -> tuple[RoleRules, ...]:
    """Return the compatibility rules of these roles."""
    parts = ((role.name, role.parts("rules")) for role in roles)
    kinds = ("RULES", "CHOICES", "GROUNDS")
    return tuple(RoleRules(name, *(_of_all(found, kind) for kind in kinds)) for name, found in parts)


def _of_all(parts: Iterable[ModuleType], name: str) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(one for part in parts for one in getattr(part, name, ())))


def discover(*packages: str) -> tuple[Role, ...]:
    """Import all roles of the Python packages ``packages`` (default: the standard roles), predecessors first.

    Of roles with the same name, the last is used. Raises ``InputErrors`` with an error for each role of a site that
    cannot be imported.
    """
    roles: dict[str, Role] = {}
    mistakes = Mistakes()
    for package in packages or (STANDARD_ROLES,):
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if info.name.startswith("_"):
                continue
            with mistakes:
                module = _import(f"{package}.{info.name}")
                here = (value for value in vars(module).values() if isinstance(value, Role))
                roles.update({role.name: role for role in here if role.function.__module__ == module.__name__})
    mistakes.refuse()
    return in_order(roles)


def _import(name: str) -> ModuleType:
    """Raises ``InputError`` with file and line if a module of the site is faulty."""
    try:
        return importlib.import_module(name)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # ``SystemExit`` would end the command silently.
        if not name.startswith(OWN_ROLES):
            raise
        (folder,) = sys.modules[name.partition(".")[0]].__path__
        raise InputError(described(error), place_of(error, folder)) from error


def place_of(error: BaseException, folder: str) -> str:
    """Return the file and line in ``folder`` (a folder or file) at which ``error`` was raised; ``folder`` if
    unknown.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder)]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else folder


def providers(need: str, roles: Iterable[Role]) -> tuple[Role, ...]:
    """Return the roles with the name ``need``, and the roles that can replace it (``provides``)."""
    return tuple(role for role in roles if need in (role.name, *role.provides))


def reading_cards(roles: Iterable[Role]) -> tuple[Role, ...]:
    """Return the roles with a module ``gpus``, including standard roles that a site's role replaces."""
    parts = {role.part_name("gpus"): role for role in reversed((*discover(), *roles))}
    return tuple(role for name, role in reversed(parts.items()) if name)


def _before(role: Role, known: Mapping[str, Role]) -> Iterator[str]:
    for need in role.follows:
        yield from [other.name for other in providers(need, known.values()) if other is not role] or [need]


def goes_before(roles: Iterable[Role]) -> dict[str, tuple[str, ...]]:
    """Return role → names of the roles that must precede it, also of unknown roles."""
    known = {role.name: role for role in roles}
    last = {name for name, role in known.items() if EVERY in role.after}
    others = {name: tuple(other for other in known if other not in last) if name in last else () for name in known}
    return {
        name: tuple(other for other in dict.fromkeys((*_before(role, known), *others[name])) if other != EVERY)
        for name, role in known.items()
    }


def in_order(roles: Mapping[str, Role], named: Sequence[str] = ()) -> tuple[Role, ...]:
    """Return the roles, each after the roles that must precede it, otherwise in the order of ``named``.

    Raises ``InputError`` if a role needs an unknown role, or roles need each other in a cycle.
    """
    for role in roles.values():
        for need in role.needs:
            if not providers(need, roles.values()):
                sentence = f"role {role.name} needs the unknown role '{need}'; {suggestion(need, roles)}"
                raise InputError(sentence, f"roles/{role.name}/")
    before = {name: [other for other in names if other in roles] for name, names in goes_before(roles.values()).items()}
    try:
        return tuple(roles[name] for name in in_sequence(before, named))
    except CycleError as error:
        raise InputError(f"roles depend on each other in a loop: {' → '.join(error.args[1])}", "roles/") from error
