"""The public way in: load an inventory, name hosts, and look at, change or check them.

    fleet = Fleet.load()
    for member in fleet.members("@rack3,!gpu05"):
        with member.connect() as session:
            plan = make_plan(member.desired, observe(session, member.desired, None))

The front door (``hostwright.cli``) uses nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostwright import inventory as inventories
from hostwright import transport
from hostwright.artifacts import Store
from hostwright.draining import Hooks, read_hooks
from hostwright.errors import InputError, InputErrors
from hostwright.inventory import Host, Inventory
from hostwright.nearest import suggestion
from hostwright.planning import Desired, desire
from hostwright.rebooting import patience
from hostwright.role import Role, discover
from hostwright.rules import check_stack
from hostwright.stack import Stack
from hostwright.stackfile import load_stack

if TYPE_CHECKING:
    from hostwright.bmc.settings import Bmc
    from hostwright.seeds.settings import Install, Reinstall

PROJECT = Path(__file__).resolve().parent.parent
DEFAULT_INVENTORY = PROJECT / "inventory"
DEFAULT_STACK = "tensorflow-2.9"


@dataclass(frozen=True)
class Member:
    """One host of the fleet with all that is wanted of it."""

    host: Host
    stack: Stack
    roles: tuple[Role, ...]
    variables: Mapping[str, Any]
    options: transport.Options

    @property
    def name(self) -> str:
        """The inventory's name of the host."""
        return self.host.name

    @cached_property
    def desired(self) -> Desired:
        """The desired states of all its roles."""
        return desire(self.name, self.stack, [(role, self.variables[role.name]) for role in self.roles])

    @property
    def direct(self) -> bool:
        """Whether the host fetches the stack's files from their vendors itself (``artifacts: direct``)."""
        how = self.host.get("artifacts", "push")
        if how not in ("push", "direct"):
            origin = self.host.vars["artifacts"].origin.exact
            raise InputError(f"artifacts: found {how!r}, expected push (over SSH) or direct (from the vendor)", origin)
        return bool(how == "direct")

    @cached_property
    def hooks(self) -> Hooks | None:
        """The commands that take work off the host and let it back, where the inventory names them."""
        return read_hooks(self.host)

    @cached_property
    def reboot_timeout_s(self) -> float:
        """How long the host may take to come back from a reboot, in seconds (``hostwright_reboot_timeout``)."""
        return patience(self.host)

    @cached_property
    def bmc(self) -> Bmc | None:
        """The host's management controller, where the inventory names one (``hostwright_bmc``)."""
        if not self._gives("hostwright_bmc"):
            return None
        from hostwright.bmc.settings import read_bmc

        return read_bmc(self.host)

    @cached_property
    def install(self) -> Install | None:
        """How the host gets a new operating system by us (``hostwright_install``)."""
        if not self._gives("hostwright_install"):
            return None
        from hostwright.seeds.settings import read_install

        return read_install(self.host)

    @cached_property
    def reinstall(self) -> Reinstall | None:
        """The site's own command that gives it one (``hostwright_reinstall``)."""
        if not self._gives("hostwright_reinstall"):
            return None
        from hostwright.seeds.settings import read_reinstall

        return read_reinstall(self.host)

    @cached_property
    def console_command(self) -> str:
        """The command that prints the host's public keys as its console has them (``hostwright_host_keys``)."""
        if not self._gives("hostwright_host_key"):
            return ""
        from hostwright.identity.sources import read_console_command

        return read_console_command(self.host)

    @cached_property
    def expected_gpus(self) -> int | None:
        """How many GPUs the host has when all are there (``hostwright_gpus``)."""
        if not self._gives("hostwright_gpus"):
            return None
        from hostwright.rebuilding.diagnosis import read_expected_gpus

        return read_expected_gpus(self.host)

    def _gives(self, beginning: str) -> bool:
        """Whether the inventory gives the host such variables: what reads them is imported only then."""
        return any(name.startswith(beginning) for name in self.host.vars)

    def check(self) -> None:
        """Raise ``InputError`` for a variable of the engine's own that cannot be used, before any host is touched."""
        own = ("direct", "hooks", "reboot_timeout_s", "bmc", "install", "reinstall", "console_command", "expected_gpus")
        for value in own:
            getattr(self, value)

    def connect(self) -> transport.Session:
        """Open an SSH session; raises ``Unreachable``."""
        return transport.connect(self.host, self.options)


class Fleet:
    """An inventory with the stacks and roles that its hosts use."""

    def __init__(self, path: Path, inventory: Inventory, roles: tuple[Role, ...], options: transport.Options):
        self.path = path
        self.inventory = inventory
        self.roles = roles
        self.options = options
        self._stacks: dict[str, Stack] = {}

    @classmethod
    def load(
        cls,
        path: Path = DEFAULT_INVENTORY,
        *,
        settings: Mapping[str, str] | None = None,
        options: transport.Options | None = None,
    ) -> Fleet:
        """Read an inventory; ``settings`` are variables of the command line, which win over all others.

        Raises ``InputError`` with every mistake of every file.
        """
        inventory = inventories.load(path, extra=settings or {})
        return cls(path, inventory, discover(), options or transport.Options())

    @property
    def stack_dirs(self) -> tuple[Path, ...]:
        """Where stacks are looked for: beside the inventory, then in the project's own."""
        beside = (self.path if self.path.is_dir() else self.path.parent) / "stacks"
        return tuple(dict.fromkeys((beside, DEFAULT_INVENTORY / "stacks")))

    @property
    def store(self) -> Store:
        """The stacks' files on this machine; pins are kept beside the stacks."""
        return Store.default(self.stack_dirs)

    def stack(self, name: str) -> Stack:
        """The stack of that name with the pins of its lock file; refused when its parts do not fit each other."""
        if name not in self._stacks:
            stack = self.store.pinned(load_stack(name, self.stack_dirs))
            refusals = check_stack(stack)
            if refusals:
                raise InputErrors([InputError(str(refusal), f"stack {name}") for refusal in refusals])
            self._stacks[name] = stack
        return self._stacks[name]

    def members(
        self, pattern: str, roles: Sequence[str] = (), named_sets: Mapping[str, Iterable[str]] | None = None
    ) -> tuple[Member, ...]:
        """The selected hosts, each with its stack and bound variables; ``roles`` narrows what is wanted of them.

        ``named_sets`` are what ``@failed`` and its kin stand for. All mistakes of all hosts' variables are raised at
        once.
        """
        chosen = self._choose(roles)
        mistakes: list[InputError] = []
        members: list[Member] = []
        for host in inventories.select(self.inventory, pattern, named_sets):
            try:
                members.append(self._member(host, chosen))
            except InputErrors as error:
                mistakes += error.errors
            except InputError as error:
                mistakes.append(error)
        if mistakes:
            raise InputErrors(list({str(mistake): mistake for mistake in mistakes}.values()))
        return tuple(members)

    def _choose(self, names: Sequence[str]) -> tuple[Role, ...]:
        known = [role.name for role in self.roles]
        for name in names:
            if name not in known:
                raise InputError(f"there is no role {name!r}; {suggestion(name, known)}", "--roles")
        return tuple(role for role in self.roles if not names or role.name in names)

    def _member(self, host: Host, roles: tuple[Role, ...]) -> Member:
        stack = self.stack(str(host.get("stack", DEFAULT_STACK)))
        slips = inventories.slips(host, {role.name: role.variables for role in self.roles})
        if slips:
            raise InputErrors(slips)
        variables = {role.name: inventories.bind(role.variables, role.name, host) for role in roles}
        member = Member(host, stack, roles, variables, self.options)
        member.check()
        return member
