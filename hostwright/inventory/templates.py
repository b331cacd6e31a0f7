"""Renders templates in connection variables (``{{ inventory_hostname }}.{{ domain }}``) with the variables of the host.

Templates run in Jinja2's sandbox. Of the filters and lookups that Ansible adds, only ``bool`` and ``lookup('env',
NAME)`` work. A variable that is itself a template is rendered first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from hostwright.common.input.yamlfile import Vaulted
from hostwright.common.secret import Secret
from hostwright.inventory.model import ALL, Value

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_MAGIC = frozenset(["inventory_hostname", "inventory_hostname_short", "group_names", "groups", "hostvars"])
_UNDEFINED = re.compile(r"'(\w+)' is undefined")
#: maximum length in characters of a rendered template, and maximum result of a multiplication
_MOST = 100_000


class CannotRender(Exception):
    """A message about an invalid template, to which the caller adds file and line."""


@dataclass(frozen=True, slots=True)
class World:
    """The variables of all hosts, and the hosts of each group, for use in templates."""

    variables: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class _Bounded(ImmutableSandboxedEnvironment):
        """A sandbox that limits the result of each multiplication in a template, and forbids the power operator."""

        intercepted_binops = frozenset(["*", "**"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            sizes = [len(side) if isinstance(side, (str, list, tuple)) else abs(side) for side in (left, right)]
            if operator == "**" or sizes[0] * sizes[1] > _MOST:
                raise CannotRender("a product or a power in the template is too large")
            return super().call_binop(context, operator, left, right)

    environment = _Bounded(undefined=StrictUndefined)
    environment.filters["bool"] = lambda value: str(value).lower() in ("true", "yes", "on", "1")
    environment.globals = {"lookup": _lookup}
    return environment


def render(text: str, host: str, world: World, own: Mapping[str, Value], groups: tuple[str, ...]) -> str:
    """Return ``text`` with its templates rendered for ``host``. Raises ``CannotRender`` if a template cannot be
    rendered.

    ``own`` are the host's variables.
    """
    return _Scope(host, world, own, groups).text(text, ())


@dataclass(frozen=True, slots=True)
class _Scope:
    host: str
    world: World
    own: Mapping[str, Value]
    groups: tuple[str, ...]

    def text(self, text: str, circle: tuple[str, ...]) -> str:
        """Render ``text``. ``circle`` has the names of variables that are now being rendered, to detect a cycle."""
        from jinja2 import TemplateError, UndefinedError

        template, names = _compiled(text)
        try:
            rendered: str = template.render({name: self._named(name, circle) for name in names if self._has(name)})
        except UndefinedError as error:
            unknown = _UNDEFINED.fullmatch(error.message or "")
            why = f"refers to {unknown[1]!r}, which is not a variable" if unknown else f"cannot be evaluated: {error}"
            raise CannotRender(f"the template {why}") from error
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise CannotRender(f"the template {text!r} cannot be evaluated here: {error}") from error
        if len(rendered) > _MOST:
            raise CannotRender("the rendered template is longer than 100,000 characters")
        return rendered

    def _has(self, name: str) -> bool:
        return name in self.own or name in _MAGIC

    def _named(self, name: str, circle: tuple[str, ...]) -> Any:
        if name in circle:
            raise CannotRender(f"variables refer to each other in a cycle: {' → '.join((*circle, name))}")
        if name in self.own:
            return self._plain(self.own[name].value, (*circle, name))
        return {
            "inventory_hostname": self.host,
            "inventory_hostname_short": self.host.partition(".")[0],
            "group_names": [group for group in self.groups if group != ALL],
            "groups": self.world.groups,
            "hostvars": _Others(self.world, circle),
        }[name]

    def _plain(self, value: Any, circle: tuple[str, ...]) -> Any:
        if isinstance(value, Vaulted):
            raise CannotRender(f"the template refers to {circle[-1]!r}, which {value.sentence}")
        value = value.reveal() if isinstance(value, Secret) else value
        if isinstance(value, str):
            return self.text(value, circle) if "{{" in value else value
        if isinstance(value, dict):
            return {key: self._plain(inner, circle) for key, inner in value.items()}
        return [self._plain(inner, circle) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class _Others:
    """The variable ``hostvars`` in templates. A variable of another host is rendered only if a template uses it."""

    world: World
    circle: tuple[str, ...]

    def __getitem__(self, host: str) -> _OneHost:
        return _OneHost(_Scope(host, self.world, self.world.variables[host], ()), self.circle)


@dataclass(frozen=True, slots=True)
class _OneHost:
    scope: _Scope
    circle: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:
        label = f"{self.scope.host}'s {name}"
        if label in self.circle:
            raise CannotRender(f"variables refer to each other in a cycle: {' → '.join((*self.circle, label))}")
        if name in self.scope.own:
            return self.scope._plain(self.scope.own[name].value, (*self.circle, label))
        raise KeyError(name)


@lru_cache(maxsize=1024)
def _compiled(text: str) -> tuple[Template, frozenset[str]]:
    from jinja2 import TemplateError, nodes
    from jinja2.meta import find_undeclared_variables

    try:
        tree = _environment().parse(text)
        if next(tree.find_all(nodes.For), None):
            raise CannotRender("loops in inventory templates are not supported")
        return _environment().from_string(tree), frozenset(find_undeclared_variables(tree))
    except (RecursionError, MemoryError) as error:
        raise CannotRender("the template is nested too deeply") from error
    except TemplateError as error:
        raise CannotRender(f"the template {text!r} cannot be parsed: {error}") from error


def _lookup(kind: str, name: str = "", *_: Any, **__: Any) -> str:
    if kind != "env":
        raise CannotRender(f"only Ansible itself can evaluate lookup({kind!r}, …) in the template")
    return os.environ.get(name, "")
