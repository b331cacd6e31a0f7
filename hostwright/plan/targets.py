"""The hosts of an inventory, each with its stack, roles and variables.

``hostwright.fleet.Fleet`` is a ``Roster`` that can also change hosts. Other packages read variables for draining,
installing and BMCs from ``TargetHost.host``.
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
    """A host of the inventory, with its stack, its roles, and the variables of each role."""

    host: Host
    stack: Stack
    roles: tuple[Role, ...]  #: roles to plan, in order, without the roles that ``--roles`` excludes
    variables: Mapping[str, Any]
    options: transport.Options
    force: bool = False  #: whether running work may be disturbed or ended (``--force``)
    all_roles: tuple[Role, ...] = ()  #: all known roles, in order
    templates: tuple[Path, ...] = (STANDARD,)  #: folders of templates in order of precedence
    #: all roles of the host, even if ``--roles`` excludes them; empty if equal to ``roles``
    of_host: tuple[Role, ...] = ()
    memory: Memory = field(default_factory=Memory, compare=False, repr=False)
    #: mirror for the host's distribution; ``None`` if the host uses its own apt sources
    packages: PackageMirror | None = field(default=None, compare=False, repr=False)
    #: known ends of life, and oldest safe versions, of the stack's software
    advisories: Advisories = field(default=NONE, compare=False, repr=False)
    #: function that returns the stacks that fit a host with these facts, best first
    fitting: Callable[[HostFacts], tuple[Stack, ...]] = field(default=lambda _: (), compare=False, repr=False)
    #: reader for variables of roles that the host does not have
    binder: Binder | None = field(default=None, compare=False, repr=False)

    @cached_property
    def kinds(self) -> Kinds:
        """Role name → class for the role's section in stack files, for all known roles."""
        return sections_of(self.all_roles or self.roles)

    @property
    def name(self) -> str:
        """The host's inventory name."""
        return self.host.name

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Return ``make()``, computed once for all hosts with the same stack, roles and variables."""
        return self.memory.kept(name, self._same, make)

    @cached_property
    def _same(self) -> Hashable:
        given = (self.stack, self.roles, self.variables, self.all_roles, self.templates, self.of_host, self.packages)
        return (self.force, read_expected_gpus(self.host), *map(Same, given))

    def _bound(self, roles: Iterable[Role]) -> tuple[tuple[Role, Any], ...]:
        return tuple((role, self.variables[role.name]) for role in roles)

    @property
    def context(self) -> RoleContext:
        """The argument ``ctx`` for the functions of the host's roles."""

        def make() -> RoleContext:
            roles, gpus = self._bound(self.of_host or self.roles), read_expected_gpus(self.host)
            return RoleContext(self.stack, self.force, roles, self.templates, gpus)

        return self.shared("context", make)

    @property
    def desired_of_all(self) -> Desired:
        """The desired state of ``roles`` without the host's name, shared by hosts with equal stack, roles and
        variables.
        """

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
        """The desired state of this host, limited to ``roles``."""
        return replace(self.desired_of_all, host=self.name)

    @property
    def occupancy(self) -> Occupancies:
        """The probes and functions of all known roles that find programs that use the host's accelerators."""
        return self.shared("occupancy", lambda: occupancies_of(self.all_roles or self.roles))

    @property
    def audit_values(self) -> tuple[AuditValue, ...]:
        """The values that audits compare, from all of the host's roles."""
        return self.shared("audit values", lambda: self.context.audit_values)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The stack's artifacts that the host's roles may need, including roles that ``--roles`` excludes."""
        return self.shared("artifacts", lambda: self.stack.used_by(role.name for role in self.of_host or self.roles))

    def files_for(self, facts: Facts | None) -> tuple[Artifact, ...]:
        """Return ``artifacts`` and the further files that a host with these facts needs.

        Without facts, return only ``artifacts``. Raises ``ArtifactError`` for an unknown file.
        """
        if facts is None:
            return self.artifacts
        states = [state for role in self.desired.roles for state in role.resources]
        debs = package_files(states, facts, self.packages) if self.packages else ()
        files = (file for state in states for file in state.role_files_for(facts))
        return (*self.artifacts, *files, *debs)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The labels of the host's artifacts that replace files of the vendor (``Artifact.stand_in``)."""
        return tuple(artifact.labelled(artifact.file) for artifact in self.artifacts if artifact.stand_in)

    def having(self, stack: Stack, more: Collection[str] = ()) -> TargetHost:
        """Return this host with the stack ``stack``, and with the further roles named in ``more``.

        Roles without a section in that stack are dropped, and so are roles that need them. Raises ``InputErrors`` for
        errors in the variables of further roles.
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
        """This host with only the roles that ``--roles`` excludes."""
        return replace(self, roles=tuple(role for role in self.of_host if role not in self.roles))

    def connect(self, password: Secret | None = None, allowance: transport.Allowance | None = None) -> RootShell:
        """Connect to the host by SSH, and return a shell. ``password`` is for sudo, by default the password in the
        inventory.

        Connections with the same ``allowance`` share its limits. Raises ``Unreachable`` if the connection fails, and
        ``ProtocolError`` if the allowance is spent.
        """
        session = transport.connect(self.host, self.options, allowance)
        return RootShell(session, password or self.host.become_password, self.host.sudo)


#: default request of a run on all hosts at once, with reboots but without draining
REQUEST = Request()


@dataclass(frozen=True, slots=True)
class _Ordered:
    of_host: tuple[Role, ...]
    planned: tuple[Role, ...]  #: roles selected with ``--roles``
    every: tuple[Role, ...]


@dataclass(frozen=True)
class Targets(Sequence[TargetHost]):
    """The hosts that a command selects, in inventory order, with the pattern and roles that selected them."""

    chosen: tuple[TargetHost, ...]
    pattern: str = ""
    roles: tuple[str, ...] = ()  #: roles selected with ``--roles``; empty for all roles
    notes: tuple[str, ...] = ()  #: notes on ignored variables with names similar to a role's variables

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
        """Inventory name → selected host."""
        return {target.name: target for target in self.chosen}


class Knowledge:
    """The functions of other packages that a roster calls. ``hostwright.fleet`` implements them.

    The functions of this class do nothing, and planning needs no more.
    """

    def check_variables(self, _host: Host, /) -> None:
        """Raise ``InputError`` for invalid variables of a host that belong to no role."""

    def check_failures(self, _roster: Roster, /) -> None:
        """Raise ``InputError`` for invalid failure rules of the roster's roles."""

    def named_sets(self, _roster: Roster, _pattern: str, /) -> Mapping[str, Iterable[str]]:
        """Return the sets of hosts in ``_pattern``: name of the set (``@failed``) → inventory names of hosts."""
        return {}

    def fitting(self, _roster: Roster, _facts: HostFacts, /) -> tuple[Stack, ...]:
        """Return the stacks that fit a host with these facts, best first."""
        return ()

    def explain(self, _roster: Roster, _output: str, /) -> Finding | None:
        """Return the known problem that explains the output of a failed command, or ``None``."""
        return None

    def examine(
        self, _target: TargetHost, _shell: RootShell, _units: Sequence[str] = (), _clean: Callable[[str], str] = str, /
    ) -> Examination | None:
        """Search a host for known problems after a failure, and read the journals of the systemd units ``_units``.

        ``_clean`` masks secrets in the result. Never raises an error.
        """
        return None

    def retry_rules(self, _roster: Roster, /) -> tuple[RetryRule, ...]:
        """Return the rules for retrying failed steps on hosts."""
        return ()


class Roster:
    """An inventory that was read, with the stacks and roles that its hosts may use."""

    knowledge = Knowledge()

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
        self.sources = tuple(sources)  #: paths of the inventory in order of precedence, lowest first
        self.vault = vault or Vault()
        self.path = inventories.identity_of(sources)  #: path that identifies the inventory in records of runs
        self.inventory = inventory
        self.roles = roles
        self.request = request
        self.options = transport.Options(host_keys="accept-new" if request.accept_new else "strict")
        self._stacks: dict[str, Stack] = {}
        self.memory = Memory()

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
        """Read the inventory of a site, or the inventories at ``path``.

        ``request`` has the variables with the highest precedence, and is the default request of runs. The default for
        ``site`` is the site from ``Site.find`` or ``Site.of``. ``vault`` decrypts values of Ansible Vault. ``tell``
        receives a text about a slow inventory program.

        Raises ``InputError`` with every error in every file. With ``mistakes``, errors are added to ``mistakes``
        instead, and unreadable files are skipped.
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
        """Return ``request``, by default the roster's request, with the roster's options for reading the inventory."""
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
        """Role name → class for the role's section in stack files, for all known roles."""
        return sections_of(self.roles)

    @cached_property
    def templates(self) -> tuple[Path, ...]:
        """The folders with templates, in order of precedence."""
        return self.site.templates

    @cached_property
    def binder(self) -> Binder:
        """The binder, which reads and validates the variables of all known roles."""
        return Binder({role.name: role.variables for role in self.roles})

    @cached_property
    def stack_dirs(self) -> tuple[Path, ...]:
        """The folders with stack files in order of precedence: next to the inventory, in the site, the standard
        folder.
        """
        return tuple(dict.fromkeys((*self.own_stacks, *self.site.stacks)))

    @property
    def store(self) -> Store:
        """The store of stack files on this machine."""
        return Store.default(self.own_stacks)

    @cached_property
    def own_stacks(self) -> tuple[Path, ...]:
        """The operator's folders with stack files: next to the inventory, then in the site."""
        beside = (folder / "stacks" for folder in map(inventories.beside, self.sources) if folder)
        return tuple(dict.fromkeys((*beside, self.site.inventory / "stacks")))

    @cached_property
    def advisories(self) -> Advisories:
        """The advisories of all roles, and the advisories stored from security bulletins.

        Raises ``InputError`` if a file with advisories is invalid.
        """
        of_roles = (role.advisories for role in self.roles)
        return combined((*of_roles, read_advisories(state_root() / ADVISORIES)))

    def fitting(self, facts: HostFacts) -> tuple[Stack, ...]:
        """Return the stacks that fit a host with these facts, best first."""
        return self.memory.kept("fitting stacks", facts, lambda: self.knowledge.fitting(self, facts))

    @cached_property
    def default_stack(self) -> str:
        """The name of the default stack. Raises ``InputError`` if neither the site nor the package sets one."""
        return default_stack(self.stack_dirs)

    def stack_name(self, host: Host) -> str:
        """Return the name of a host's stack from its variables, else the name of the default stack."""
        return stack_variable(host) or self.default_stack

    def stack(self, name: str) -> Stack:
        """Return the stack ``name`` with the checksums in its lock file. Raises ``InputErrors`` if its parts are
        incompatible.
        """
        if name not in self._stacks:
            stack = self.store.pinned(load_stack(name, self.stack_dirs, self.kinds))
            self._fits(stack, stack.roles)
            self._stacks[name] = stack
        return self._stacks[name]

    def _packages(self, stack: Stack) -> PackageMirror:
        lock = packages_lock(self.store, stack.name)
        return self.memory.kept("packages", (lock,), lambda: PackageMirror(read_locked(lock)))

    def _fits(self, stack: Stack, names: Collection[str]) -> None:
        refusals = check_stack(stack, rules_of(role for role in self.roles if role.name in names))
        if refusals:
            raise InputErrors([InputError(str(refusal), f"stack {stack.name}") for refusal in refusals])

    def targets(self, pattern: str, roles: Sequence[str] = ()) -> Targets:
        """Return the hosts that ``pattern`` selects, each with its stack and variables, limited to ``roles``.

        ``pattern`` is the value of ``--hosts``: ``gpu01,gpu[03-09],@rack3,!gpu05``. Raises ``InputErrors`` with every
        error in the hosts' variables.
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
        """Return the hosts that ``pattern`` selects. ``usable=False`` includes hosts with errors in the inventory."""
        if not self.inventory.hosts:
            place = next((source for source in self.sources if source.exists()), self.site.inventory)
            file = place / "hosts.yml" if place.is_dir() else place
            sample = "all: {hosts: {gpu01: {ansible_host: 192.0.2.11}}}"
            raise InputError(f"the inventory has no hosts yet; add them to {file}, for example `{sample}`")
        return inventories.select(self.inventory, pattern, self.knowledge.named_sets(self, pattern), usable=usable)

    def _chosen(self, names: Sequence[str]) -> frozenset[str]:
        known = [role.name for role in self.roles]
        for name in names:
            if name not in known:
                raise InputError(f"unknown role {name!r}; {suggestion(name, known)}", "--roles")
        return frozenset(names or known)

    def also(self, target: TargetHost, names: Collection[str]) -> TargetHost:
        """Return the host with its roles and the roles ``names``, so that roles outside the host's list can be
        removed.
        """
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
        """Return ``host`` with its stack and variables, limited to the roles ``chosen``.

        ``check`` also validates variables that belong to no role. Raises ``InputErrors`` with the errors in the
        variables.
        """
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
        """Return the host with the stack ``stack``; if its variables have no list of roles, also with that stack's
        roles.
        """
        if target.stack.name == stack.name:
            return target
        return target.having(stack, () if VARIABLE in target.host.vars else stack.roles)

    def _roles_in_order(self, host: Host, stack: Stack, chosen: frozenset[str] | None) -> _Ordered:
        of_host = host_roles(host, stack, self.roles)
        if {role.name for role in of_host} != set(stack.roles):
            self._fits(stack, [role.name for role in of_host])
        planned = tuple(role for role in of_host if chosen is None or role.name in chosen)
        return _Ordered(of_host, planned, in_order({role.name: role for role in self.roles}, stack.roles))

    def _files_read(self, roles: Iterable[Role]) -> None:
        """Raise ``InputErrors`` if the inventory file of a role, such as ``workspaces.yml``, cannot be read."""
        names = {role.name for role in roles if self.inventory.left_out}
        unread = [
            error for error in self.inventory.left_out if Path((error.where or "").partition(":")[0]).stem in names
        ]
        if unread:
            raise InputErrors(
                [
                    InputError(
                        f"{error.sentence}; hosts with this role are not changed until it can be read", error.where
                    )
                    for error in unread
                ]
            )
