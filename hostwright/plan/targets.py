"""An inventory's hosts, each with the stack, roles and variables that are wanted of it.

``hostwright.fleet.Fleet`` is a ``Roster`` that can also change its hosts. Variables about draining, the BMC or the
installation of a host are not read here but where they are used, from ``target.host``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from hostwright import inventory as inventories
from hostwright import transport
from hostwright.common.canonical import Same
from hostwright.common.errors import Examination, Finding, InputError, InputErrors, Mistakes
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.vault import Vault
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.common.templates import STANDARD
from hostwright.inventory import Binder, Host, Inventory
from hostwright.plan.desired import Desired
from hostwright.plan.facts.expected import read_expected_gpus
from hostwright.plan.facts.memory import Memory
from hostwright.plan.host.occupancy import Occupancies, occupancies_of
from hostwright.plan.model import Facts, RetryRule
from hostwright.plan.roles.auditvalue import AuditValue
from hostwright.plan.roles.hostroles import VARIABLE, enabled_is_gone, host_roles, named_roles, usable
from hostwright.plan.roles.listing import check_stack_variable, stack_variable, strangers_noted
from hostwright.plan.roles.role import Role, RoleContext, discover, in_order, rules_of, sections_of
from hostwright.plan.roles.site import Site
from hostwright.plan.roles.wants import desire
from hostwright.plan.stacks.distribution import mirrored, package_files
from hostwright.stack.ages import FILE as ADVISORIES
from hostwright.stack.ages import NONE, Advisories, combined, read_advisories
from hostwright.stack.rules import HostFacts, check_stack
from hostwright.stack.stack import Artifact, Stack
from hostwright.stack.stackfile import Kinds, default_stack, load_stack
from hostwright.stack.store.artifacts import Store
from hostwright.stack.store.debs import PackageMirror, packages_lock, read_locked
from hostwright.transport.root.rootshell import RootShell

T = TypeVar("T")


@dataclass(frozen=True)
class TargetHost:
    """One host with everything that is wanted of it."""

    host: Host
    stack: Stack
    roles: tuple[Role, ...]  #: those that are planned now, in order
    variables: Mapping[str, Any]  #: the variables of each role, by its name
    options: transport.Options
    force: bool = False  #: whether running work may be disturbed or ended (``--force``)
    all_roles: tuple[Role, ...] = ()  #: every role that can be found, wanted here or not, in order
    templates: tuple[Path, ...] = (STANDARD,)  #: the folders in which templates are looked for
    of_host: tuple[Role, ...] = ()  #: the host's roles, also those that ``--roles`` leaves out; empty: as ``roles``
    #: what was judged in this run: hosts of one roster share it
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)
    #: from which the packages of its distribution come; ``None``: from its own archive
    packages: PackageMirror | None = field(default=None, compare=False, repr=False)
    #: the ends of life and security floors that are known
    advisories: Advisories = field(default=NONE, compare=False, repr=False)
    #: the stacks that fit a host with these facts, the best first
    fitting: Callable[[HostFacts], tuple[Stack, ...]] = field(default=lambda _: (), compare=False, repr=False)
    #: reads the variables of further roles; ``None``: the host gets none
    binder: Binder | None = field(default=None, compare=False, repr=False)

    @cached_property
    def kinds(self) -> Kinds:
        """The models of the sections of all roles that there are."""
        return sections_of(self.all_roles or self.roles)

    @property
    def name(self) -> str:
        """The inventory's name of the host."""
        return self.host.name

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` returns: made once for all hosts with the same stack, roles and variables."""
        return self.memory.kept(name, self._same, make)

    @cached_property
    def _same(self) -> Hashable:
        """The same for two hosts exactly where the same is wanted of them."""
        given = (self.stack, self.roles, self.variables, self.all_roles, self.templates, self.of_host, self.packages)
        return (self.force, read_expected_gpus(self.host), *map(Same, given))

    def _bound(self, roles: Iterable[Role]) -> tuple[tuple[Role, Any], ...]:
        return tuple((role, self.variables[role.name]) for role in roles)

    @property
    def context(self) -> RoleContext:
        """What its roles get beside their own variables."""

        def make() -> RoleContext:
            roles, gpus = self._bound(self.of_host or self.roles), read_expected_gpus(self.host)
            return RoleContext(self.stack, self.force, roles, self.templates, gpus)

        return self.shared("context", make)

    @property
    def desired_of_all(self) -> Desired:
        """The desired states of ``roles`` on a host without a name."""

        def make() -> Desired:
            found = desire("", self.context, self._bound(self.roles), self.memory, self.packages)
            files = tuple(file for role in found.roles for state in role.resources for file in state.role_files())
            files = (*files, *(self.packages.files if self.packages else ()))
            stack = self.stack.with_files(files)
            known = replace(found, occupancy=self.occupancy, advisories=self.advisories, fitting=self.fitting)
            return replace(known, stack=stack)

        return self.shared("desired", make)

    @property
    def desired(self) -> Desired:
        """The desired states of ``roles``."""
        return replace(self.desired_of_all, host=self.name)

    @property
    def occupancy(self) -> Occupancies:
        """How to find out who uses the host, as all roles know it."""
        return self.shared("occupancy", lambda: occupancies_of(self.all_roles or self.roles))

    @property
    def audit_values(self) -> tuple[AuditValue, ...]:
        """The values that audits compare, of all its roles."""
        return self.shared("audit values", lambda: self.context.audit_values)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The artifacts of its stack that its roles may need, also those that ``--roles`` leaves out."""
        return self.shared("artifacts", lambda: self.stack.used_by(role.name for role in self.of_host or self.roles))

    def files_for(self, facts: Facts | None) -> tuple[Artifact, ...]:
        """These, with those that its states take on a host with these facts, where they are known. Raises
        ``ArtifactError`` for one that nobody can bring."""
        if facts is None:
            return self.artifacts
        states = [state for role in self.desired.roles for state in role.resources]
        debs = package_files(states, facts, self.packages) if self.packages else ()
        files = (file for state in states for file in state.role_files_for(facts))
        return (*self.artifacts, *files, *debs)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The files among them that are not the vendor's own but stand-ins of the lab."""
        return tuple(artifact.labelled(artifact.file) for artifact in self.artifacts if artifact.stand_in)

    def having(self, stack: Stack, more: Collection[str] = ()) -> TargetHost:
        """The host with another stack, and with ``more`` roles that it has then.

        Without the roles of which that stack says nothing, and those that need them. Where the host is narrowed to
        some roles (``--roles``), it stays so. Raises ``InputErrors`` for variables of further roles.
        """
        here, planned = {role.name for role in self.of_host}, {role.name for role in self.roles}
        further = [role.name for role in self.all_roles if role.name in more and role.name not in here]
        known = self.all_roles if further else self.of_host
        of_host = usable((role for role in known if role.name in here or role.name in further), stack)
        if here == planned:
            planned.update(further)
        bound = self.binder.bind(further, self.host) if further and self.binder else {}
        roles = tuple(role for role in of_host if role.name in planned)
        variables = {**self.variables, **bound}
        return replace(self, stack=stack, roles=roles, of_host=of_host, variables=variables)

    @property
    def rest(self) -> TargetHost:
        """The host with its other roles instead: those that ``--roles`` leaves out."""
        return replace(self, roles=tuple(role for role in self.of_host if role not in self.roles))

    def connect(self, password: Secret | None = None, allowance: transport.Allowance | None = None) -> RootShell:
        """Open an SSH session. ``password`` is for sudo; without it, the inventory's. ``allowance`` is what the host
        may send over all connections that share it. Raises ``Unreachable``, and ``ProtocolError`` where it is spent."""
        session = transport.connect(self.host, self.options, allowance)
        return RootShell(session, password or self.host.become_password, self.host.sudo)


REQUEST = Request()  #: all hosts at once, whatever fails; no work is drained, and hosts may reboot


@dataclass(frozen=True, slots=True)
class _Ordered:
    """The roles of hosts that name the same ones, in order."""

    of_host: tuple[Role, ...]
    planned: tuple[Role, ...]  #: those to which the hosts were narrowed
    every: tuple[Role, ...]  #: all that there are


@dataclass(frozen=True)
class Targets(Sequence[TargetHost]):
    """The selected hosts, in the inventory's order, and what selected them."""

    chosen: tuple[TargetHost, ...]
    pattern: str = ""
    roles: tuple[str, ...] = ()  #: the roles to which they were narrowed (``--roles``); empty: all
    notes: tuple[str, ...] = ()  #: variables of theirs that look like a role's and are not read

    @overload
    def __getitem__(self, index: int) -> TargetHost: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TargetHost, ...]: ...
    def __getitem__(self, index: int | slice) -> TargetHost | tuple[TargetHost, ...]:
        return self.chosen[index]

    def __len__(self) -> int:
        return len(self.chosen)

    @cached_property
    def by_name(self) -> dict[str, TargetHost]:
        """Each host by its inventory name."""
        return {target.name: target for target in self.chosen}


class Knowledge:
    """What a roster cannot know of itself. This one knows nothing, for a roster that only reads and plans;
    ``hostwright.fleet`` has the one that knows everything."""

    def check_variables(self, _host: Host, /) -> None:
        """Raise ``InputError`` for further variables of a host that cannot be used."""

    def check_failures(self, _roster: Roster, /) -> None:
        """Raise ``InputError`` for known failures of its roles that cannot be used."""

    def named_sets(self, _roster: Roster, _pattern: str, /) -> Mapping[str, Iterable[str]]:
        """The hosts that ``@failed`` and the like in a pattern stand for, by name."""
        return {}

    def fitting(self, _roster: Roster, _facts: HostFacts, /) -> tuple[Stack, ...]:
        """The stacks that fit a host with these facts, the best first."""
        return ()

    def explain(self, _roster: Roster, _output: str, /) -> Finding | None:
        """The known problem that the output of something that failed names."""
        return None

    def examine(
        self, _target: TargetHost, _shell: RootShell, _units: Sequence[str] = (), _clean: Callable[[str], str] = str, /
    ) -> Examination | None:
        """Ask a host on which something failed for the signs of known problems, and for the journals of these systemd
        units; ``clean`` masks secrets in what it says. Never an error."""
        return None

    def retry_rules(self, _roster: Roster, /) -> tuple[RetryRule, ...]:
        """Which failures of a step are retried on the host, and which are not whatever else its output says."""
        return ()


class Roster:
    """An inventory with the stacks and roles that its hosts use, as a request reads it."""

    knowledge = Knowledge()  #: of its variables, runs and failures, by rooms above this one

    def __init__(
        self,
        sources: Sequence[Path],
        inventory: Inventory,
        roles: tuple[Role, ...],
        request: Request,
        *,
        site: Site,
        vault: Vault | None = None,
    ):
        self.site = site
        self.sources = tuple(sources)  #: the places that the inventory was read from, later ones winning
        self.vault = vault or Vault()
        self.path = inventories.identity_of(sources)  #: what identifies the inventory in records
        self.inventory = inventory
        self.roles = roles
        self.request = request
        self.options = transport.Options(host_keys="accept-new" if request.accept_new else "strict")
        self._stacks: dict[str, Stack] = {}
        self.memory = Memory()  #: what is judged of its hosts

    @classmethod
    def load(
        cls,
        path: Path | Sequence[Path] | None = None,
        request: Request = REQUEST,
        *,
        site: Site | None = None,
        vault: Vault | None = None,
        tell: Callable[[str], None] = lambda _: None,
        mistakes: Mistakes | None = None,
    ) -> Self:
        """Read the inventory of a site, or those at ``path``; ``tell`` hears of a program that is slow to answer.

        Without ``site``, it is the one that the working directory is in (``Site.find``, ``Site.of``). ``request`` has
        the variables that win over all others (``var``), and whether unknown host keys are accepted; it is also the
        request of each run on these hosts that is given no other. ``vault`` opens what is encrypted with Ansible Vault.
        Raises ``InputError`` with every mistake in every file; with ``mistakes``, they are collected there, and what
        cannot be read is left out.
        """
        named = (Path(path),) if isinstance(path, (str, Path)) else tuple(path or ())
        sources = tuple(source for place in named for source in inventories.sources_of(place))
        chosen = site or (Site.of(sources[0]) if sources else Site.find())
        vault = vault or Vault()
        read = partial(inventories.load, *sources) if sources else partial(inventories.load_site, chosen.inventory)
        found = Mistakes() if mistakes is None else mistakes
        inventory, roles = Inventory({}, {}), tuple[Role, ...]()
        with found:
            inventory = read(extra=request.variables(), vault=vault, tell=tell)
        with found:
            roles = discover(*chosen.role_packages)
        if mistakes is None:
            found.refuse()
        return cls(sources or (chosen.inventory,), inventory, roles, request, site=chosen, vault=vault)

    def request_of(self, targets: Targets, request: Request | None = None) -> Request:
        """The request of a run on these hosts. What it says about reading the inventory is as it was read."""
        own = self.request
        return replace(
            request or own,
            hosts=targets.pattern,
            roles=",".join(targets.roles),
            var=own.var,
            accept_new=own.accept_new,
            force=own.force,
        )

    @cached_property
    def kinds(self) -> Kinds:
        """The models of the sections of all roles that there are."""
        return sections_of(self.roles)

    @cached_property
    def templates(self) -> tuple[Path, ...]:
        """The folders in which templates are looked for."""
        return self.site.templates

    @cached_property
    def binder(self) -> Binder:
        """Binds the variables of all roles that there are."""
        return Binder({role.name: role.variables for role in self.roles})

    @cached_property
    def stack_dirs(self) -> tuple[Path, ...]:
        """Where stacks are looked for: beside the inventory, then in the site's, then in the standard ones."""
        return tuple(dict.fromkeys((*self.own_stacks, *self.site.stacks)))

    @property
    def store(self) -> Store:
        """The stacks' files on this machine; pins are kept beside the stacks, those of standard ones in the site."""
        return Store.default(self.own_stacks)

    @cached_property
    def own_stacks(self) -> tuple[Path, ...]:
        """Where stacks of an operator's own are: beside the inventory, then in the site's."""
        beside = (folder / "stacks" for folder in map(inventories.beside, self.sources) if folder)
        return tuple(dict.fromkeys((*beside, self.site.inventory / "stacks")))

    @cached_property
    def advisories(self) -> Advisories:
        """The ends of life and security floors that the roles know, with those of bulletins that were read here. Raises
        ``InputError``."""
        of_roles = (role.advisories for role in self.roles)
        return combined((*of_roles, read_advisories(state_root() / ADVISORIES)))

    def fitting(self, facts: HostFacts) -> tuple[Stack, ...]:
        """The stacks that fit a host with these facts, the best first."""
        return self.memory.kept("fitting stacks", facts, lambda: self.knowledge.fitting(self, facts))

    @cached_property
    def default_stack(self) -> str:
        """The name of the stack of hosts that name none. Raises ``InputError`` where neither the site nor the package
        has one."""
        return default_stack(self.stack_dirs)

    def stack_name(self, host: Host) -> str:
        """The name of the stack of a host: what its variables say, else the default."""
        return stack_variable(host) or self.default_stack

    def stack(self, name: str) -> Stack:
        """The stack of that name with the pins of its lock file; refused when its parts do not fit each other."""
        if name not in self._stacks:
            stack = self.store.pinned(load_stack(name, self.stack_dirs, self.kinds))
            self._fits(stack, stack.roles)
            self._stacks[name] = stack
        return self._stacks[name]

    def _packages(self, stack: Stack) -> PackageMirror:
        """The packages of distributions that the mirror has for hosts with this stack. Raises ``InputError``."""
        lock = packages_lock(self.store, stack.name)
        return self.memory.kept("packages", (lock,), lambda: PackageMirror(read_locked(lock)))

    def _fits(self, stack: Stack, names: Collection[str]) -> None:
        """Raise ``InputErrors`` where the parts of a stack do not fit each other for a host with these roles."""
        refusals = check_stack(stack, rules_of(role for role in self.roles if role.name in names))
        if refusals:
            raise InputErrors([InputError(str(refusal), f"stack {stack.name}") for refusal in refusals])

    def targets(self, pattern: str, roles: Sequence[str] = ()) -> Targets:
        """The selected hosts, each with its stack and variables; ``roles`` narrows what is wanted of them.

        ``pattern`` is as after ``--hosts``: ``gpu01,gpu[03-09],@rack3,!gpu05``. Raises ``InputErrors`` with every
        mistake in the variables of these hosts.
        """
        chosen = self._chosen(roles)
        mistakes = Mistakes()
        targets: list[TargetHost] = []
        hosts = self.select(pattern)
        for host in hosts:
            with mistakes:
                targets.append(self.target(host, chosen))
        mistakes.refuse()
        return Targets(tuple(targets), pattern, tuple(roles), strangers_noted(hosts, self.binder))

    def select(self, pattern: str, *, usable: bool = True) -> list[Host]:
        """The selected hosts as the inventory has them; with ``usable=False``, also those that cannot be reached."""
        if not self.inventory.hosts:
            place = next((source for source in self.sources if source.exists()), self.site.inventory)
            file = place / "hosts.yml" if place.is_dir() else place
            sample = "all: {hosts: {gpu01: {ansible_host: 192.0.2.11}}}"
            raise InputError(f"the inventory has no hosts yet; write them to {file}, such as `{sample}`")
        return inventories.select(self.inventory, pattern, self.knowledge.named_sets(self, pattern), usable=usable)

    def _chosen(self, names: Sequence[str]) -> frozenset[str]:
        known = [role.name for role in self.roles]
        for name in names:
            if name not in known:
                raise InputError(f"there is no role {name!r}; {suggestion(name, known)}", "--roles")
        return frozenset(names or known)

    def also(self, target: TargetHost, names: Collection[str]) -> TargetHost:
        """The host with further roles that its list does not name, so that they can be removed."""
        off = tuple(role for role in self.roles if role.name in names and role not in target.of_host)
        if not off:
            return target
        bound = self.binder.bind([role.name for role in off], target.host)
        return replace(
            target,
            roles=(*target.roles, *off),
            of_host=(*target.of_host, *off),
            variables={**target.variables, **bound},
        )

    def target(self, host: Host, chosen: frozenset[str] | None = None, *, check: bool = True) -> TargetHost:
        """A host with its stack and variables, narrowed to the ``chosen`` roles; ``check`` also its variables that no
        role reads. Raises ``InputErrors``."""
        check_stack_variable(host, self._stacks, self.stack_dirs)
        stack = self.stack(self.stack_name(host))
        mistakes = [*enabled_is_gone(host, self.roles), *(self.binder.strangers(host) if self.request.strict else ())]
        if mistakes:
            raise InputErrors(mistakes)
        named = (stack.name, named_roles(host, stack), chosen)
        ordered = self.memory.kept("roles", named, lambda: self._roles_in_order(host, stack, chosen))
        self._files_read(ordered.of_host)
        variables = self.binder.bind([role.name for role in ordered.of_host], host)
        if check:
            self.knowledge.check_variables(host)
        return TargetHost(
            host, stack, ordered.planned, variables, self.options, self.request.force, ordered.every, self.templates,
            ordered.of_host, self.memory, self._packages(stack) if mirrored(variables) else None, self.advisories,
            self.fitting, self.binder,
        )  # fmt: skip

    @staticmethod
    def with_stack(target: TargetHost, stack: Stack) -> TargetHost:
        """A host as it is with another stack of the inventory: its roles are that stack's, where it names none."""
        if target.stack.name == stack.name:
            return target
        return target.having(stack, () if VARIABLE in target.host.vars else stack.roles)

    def _roles_in_order(self, host: Host, stack: Stack, chosen: frozenset[str] | None) -> _Ordered:
        """The roles of a host in their order. Raises ``InputErrors``."""
        of_host = host_roles(host, stack, self.roles)
        if {role.name for role in of_host} != set(stack.roles):
            self._fits(stack, [role.name for role in of_host])
        planned = tuple(role for role in of_host if chosen is None or role.name in chosen)
        return _Ordered(of_host, planned, in_order({role.name: role for role in self.roles}, stack.roles))

    def _files_read(self, roles: Iterable[Role]) -> None:
        """Raise for a file that is named after a role (``workspaces.yml``) and was left out of the inventory: what it
        says is not known, and a host must not be brought to the opposite."""
        names = {role.name for role in roles if self.inventory.left_out}
        unread = [
            error for error in self.inventory.left_out if Path((error.where or "").partition(":")[0]).stem in names
        ]
        if unread:
            raise InputErrors(
                [
                    InputError(f"{error.sentence}; hosts with its role wait until it can be read", error.where)
                    for error in unread
                ]
            )
