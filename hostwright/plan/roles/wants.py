"""What is wanted of hosts with the same stack, roles and variables: made once for all of them.

A role's function is called once for all hosts that have the same for it. It may look at the variables of other roles
(``RoleContext.roles``): that it does is noted, and only then do these count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hostwright.common.canonical import Same
from hostwright.plan.desired import Desired, DesiredRole
from hostwright.plan.facts.memory import Memory
from hostwright.plan.facts.noted import Notes
from hostwright.plan.host.occupancy import Occupancies, occupancies_of
from hostwright.plan.roles.auditvalue import AuditValue
from hostwright.plan.roles.role import Role, RoleContext, goes_before, rules_of
from hostwright.plan.roles.rolefiles import role_files
from hostwright.plan.stacks.distribution import with_mirror
from hostwright.stack.stack import Artifact, Section, Stack
from hostwright.stack.store.debs import PackageMirror

_OTHERS = "variables of other roles"  #: the question of a role's function that looks at them


@dataclass(frozen=True)
class Wants:
    """What is wanted of them, apart from their names."""

    stack: Stack
    roles: tuple[Role, ...]  #: those that are planned now, in order
    variables: Mapping[str, Any]  #: the variables of each role, by its name
    force: bool
    all_roles: tuple[Role, ...]
    templates: tuple[Path, ...]
    of_host: tuple[Role, ...]  #: the host's roles, also those that ``--roles`` leaves out; empty: as ``roles``
    memory: Memory = field(compare=False, repr=False)
    #: from which the packages of the distribution come; ``None``: from its archive
    packages: PackageMirror | None = None
    gpus: int | None = None  #: how many GPUs the hosts have, as their inventory says

    @cached_property
    def context(self) -> RoleContext:
        """What the roles get beside their own variables."""
        return RoleContext(self.stack, self.force, self._bound(self.of_host or self.roles), self.templates, self.gpus)

    @cached_property
    def desired(self) -> Desired:
        """The desired states of ``roles`` on a host without a name."""
        found = desire("", self.context, self._bound(self.roles), self.memory, self.packages)
        files = role_files(resource for role in found.roles for resource in role.resources)
        files = (*files, *(self.packages.files if self.packages else ()))
        return replace(found, stack=self.stack.with_files(files), occupancy=self.occupancy)

    @cached_property
    def occupancy(self) -> Occupancies:
        """How to find out who uses a host, as all roles know it."""
        return occupancies_of(self.all_roles or self.roles)

    @cached_property
    def audit_values(self) -> tuple[AuditValue, ...]:
        """The values that audits compare, of all roles."""
        return self.context.audit_values

    @cached_property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The artifacts of the stack that the roles may need, also those that ``--roles`` leaves out."""
        return self.stack.used_by(role.name for role in self.of_host or self.roles)

    @cached_property
    def stand_ins(self) -> tuple[str, ...]:
        """The files among them that are not the vendor's own but stand-ins of the lab."""
        return tuple(artifact.file for artifact in self.artifacts if artifact.stand_in)

    def _bound(self, roles: Iterable[Role]) -> tuple[tuple[Role, Any], ...]:
        return tuple((role, self.variables[role.name]) for role in roles)


def desire(
    host: str,
    ctx: RoleContext,
    roles: Iterable[tuple[Role, object]],
    memory: Memory | None = None,
    packages: PackageMirror | None = None,
) -> Desired:
    """The desired states of a host, from its roles in order, each with its variables. With ``packages``, those of its
    distribution come from there."""
    memory, chosen = memory or Memory(), tuple(roles)
    before = goes_before(role for role, _ in chosen)
    names = tuple(role.name for role, _ in ctx.roles)
    same = (Same(ctx.stack), ctx.force, ctx.templates, ctx.gpus, names, Same(packages))

    def states(role: Role, values: object) -> DesiredRole:
        def of_role(wish: _Wish) -> DesiredRole:
            states = role.resources(values, wish.context)
            return DesiredRole(role.name, before[role.name], with_mirror(states, packages) if packages else states)

        key = ("desired", Same(role), Same(values), before[role.name], *same)
        return memory.judged(key, _Wish(ctx), of_role)

    of_host = [role for role, _ in ctx.roles or chosen]
    return Desired(
        host,
        ctx.stack,
        tuple(states(role, values) for role, values in chosen),
        rules=rules_of(of_host),
        of_host=tuple(role.name for role in of_host),
    )


@dataclass(frozen=True, slots=True)
class _Wish:
    """``RoleContext`` as what is known of a host: the variables of all its roles are all that may be read of it."""

    context: RoleContext

    def token(self, _question: Hashable) -> Hashable:
        return tuple(Same(values) for _, values in self.context.roles)

    def noting(self, notes: Notes) -> _Wish:
        ctx = _NotedContext(*(getattr(self.context, part.name) for part in fields(RoleContext)))
        object.__setattr__(ctx, "noted", lambda: notes.setdefault(_OTHERS, self.token(_OTHERS)))
        return _Wish(ctx)


class _NotedContext(RoleContext):
    """What a role gets, which notes where it looks at the variables of other roles."""

    __slots__ = ("noted",)

    def __getattribute__(self, name: str) -> Any:
        if name == "roles":
            object.__getattribute__(self, "noted")()
        return super().__getattribute__(name)

    @property
    def sections(self) -> Mapping[str, Section]:
        """As of all: of the roles, only their names count, which are the same wherever a result is used again."""
        return RoleContext(self.stack, self.force, object.__getattribute__(self, "roles"), self.templates).sections
