"""Makes desired states, once for all hosts with the same stack, roles and variables.

The variables of a host's other roles (``RoleContext.roles``) matter only if a role's function reads them.
``_NotedContext`` records these reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from hostwright.common.canonical import Same
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.facts.memory import Memory
from hostwright.plan.roles.role import Role, RoleContext, goes_before, rules_of
from hostwright.plan.stacks.distribution import with_mirror
from hostwright.stack.stack import Section
from hostwright.stack.store.debs import PackageMirror


def desire(
    host: str,
    ctx: RoleContext,
    roles: Iterable[tuple[Role, object]],
    memory: Memory | None = None,
    packages: PackageMirror | None = None,
) -> Desired:
    """Return the desired state of ``host``. ``roles`` are the host's roles with their variables, in order.

    With ``packages``, states install the distribution's packages from this mirror. ``memory`` is the run's cache.
    """
    memory, chosen = memory or Memory(), tuple(roles)
    before = goes_before(role for role, _ in chosen)
    names = tuple(role.name for role, _ in ctx.roles)
    others = tuple(Same(values) for _, values in ctx.roles)
    same = (Same(ctx.stack), ctx.force, ctx.templates, ctx.gpus, names, Same(packages))

    def states(role: Role, values: object) -> DesiredRole:
        def make() -> tuple[DesiredRole, tuple[Same[Any], ...]]:
            looked: list[None] = []
            states = role.resources(values, _NotedContext.of(ctx, looked))
            states = with_mirror(states, packages) if packages else states
            return DesiredRole(role.name, before[role.name], states, role.provides), others if looked else ()

        name, key = f"states of {role.name}", (Same(role), Same(values), before[role.name], *same)
        made, read = memory.kept(name, key, make)
        return made if read in ((), others) else memory.kept(name, (*key, *others), make)[0]

    of_host = [role for role, _ in ctx.roles or chosen]
    return Desired(
        host,
        ctx.stack,
        tuple(states(role, values) for role, values in chosen),
        rules=rules_of(of_host),
        of_host=tuple(role.name for role in of_host),
    )


class _NotedContext(RoleContext):
    """A ``RoleContext`` that appends to the list ``looked`` when a role's function reads other roles' variables."""

    __slots__ = ("looked",)

    @classmethod
    def of(cls, ctx: RoleContext, looked: list[None]) -> _NotedContext:
        noted = cls(*(getattr(ctx, part.name) for part in fields(RoleContext)))
        object.__setattr__(noted, "looked", looked)
        return noted

    def __getattribute__(self, name: str) -> Any:
        if name == "roles":
            object.__getattribute__(self, "looked").append(None)
        return super().__getattribute__(name)

    @property
    def sections(self) -> Mapping[str, Section]:
        """Reads of ``sections`` are not recorded, because every cache key contains the role names."""
        return RoleContext(self.stack, self.force, object.__getattribute__(self, "roles"), self.templates).sections
