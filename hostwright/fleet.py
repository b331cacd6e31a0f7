"""The public API: load an inventory, name hosts, and look at, change or check them. What comes of it are values.

    >>> from pathlib import Path
    >>> from hostwright.fleet import Audience, Fleet
    >>> fleet = Fleet.load(Path("inventory"))
    >>> members = fleet.members("@rack3,!gpu05")
    >>> results = fleet.plan(members)
    >>> [(found.host, len(found.plan.changes)) for found in results.values]
    []
    >>> [(error.host, error.sentence) for error in results.errors]
    [('gpu03', '127.0.0.1:... refuses the connection...')]
    >>> ended = fleet.verify(members, audience=Audience.of(lambda event: print(event.host, type(event).__name__)))
    gpu03 HostEnded
    >>> ended.status
    1

No host is changed by ``plan``, ``verify``, ``audit`` and ``decide``. The command line does all that it does to hosts by
this API, and records the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.apply.host.variables import read_apply_variables
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.rollout.options import UNBOUNDED, ChangeOptions, RolloutOptions, RunOptions
from hostwright.apply.rollout.recording import NOBODY, Audience, RunResults
from hostwright.common.errors import Mistakes
from hostwright.common.places import state_root
from hostwright.inventory import Host
from hostwright.plan.member import Member, Members, Roster
from hostwright.rebuild.ways.means import read_means

if TYPE_CHECKING:
    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.locking.hostlocks import HostLocks
    from hostwright.apply.rollout.removal import Removal
    from hostwright.apply.rollout.rollback import WayBack
    from hostwright.apply.rollout.rollout import Results
    from hostwright.audit.auditor import AuditOptions, Auditor
    from hostwright.audit.fleetaudit import FleetAudit
    from hostwright.audit.history import FleetDiff, HostHistory
    from hostwright.common.secret import Secret
    from hostwright.plan.model import Plan
    from hostwright.plan.planning import HostPlan
    from hostwright.plan.stacklist import ListedStack
    from hostwright.rebuild.newkeys import KeyResults, Told
    from hostwright.rebuild.orders import Order, Powered
    from hostwright.rebuild.rebuild import Rebuild, Start
    from hostwright.rebuild.run import Decisions, Rebuilt
    from hostwright.stack.store.mirroring import Mirrored, TransferProgress
    from hostwright.verify.verdict import Verdict

__all__ = ["Audience", "ChangeOptions", "Fleet", "Member", "Members", "RolloutOptions", "RunResults"]


class Fleet(Roster):
    """A roster of which every room has read its own variables: a mistake is an error before any host is touched.

    In ``members``, ``@failed`` and the like are the hosts of the last run on this inventory, ``@drifted`` and the like
    those of each host's last audit. ``password`` is for sudo on all hosts; without it each host's own, from the
    inventory. ``audience`` is told of a run while it goes on.
    """

    def _check(self, host: Host) -> None:
        mistakes = Mistakes()
        with mistakes:
            read_apply_variables(host)
        with mistakes:
            read_means(host)
        mistakes.refuse()

    def explain(self, output: str) -> str:
        """Cause and cure of what a failed step printed, where a role knows them."""
        from hostwright.audit.failures import catalogue  # a hundred rules: only who fails waits for them

        return catalogue(self.roles).explained(output)

    def _named_sets(self, pattern: str) -> Mapping[str, Iterable[str]]:
        if "@" not in pattern:
            return {}
        from hostwright.audit.history import sets_of

        return sets_of(pattern, state_root(), self.path, self.inventory.groups)

    def plan(self, members: Members, *, goal: Goal = AS_WANTED, password: Secret | None = None) -> Results[HostPlan]:
        """What stands between hosts and what is wanted of them. Changes nothing."""
        from hostwright.apply.rollout.planning import plan_each

        return plan_each(members, Connections(password), goal)

    def provision(
        self,
        members: Members,
        *,
        change: ChangeOptions = UNBOUNDED,
        saved: Mapping[str, Plan] | None = None,
        password: Secret | None = None,
        audience: Audience = NOBODY,
    ) -> RunResults[Outcome]:
        """Bring hosts to their stack. ``saved`` are plans shown before: a host whose plan is stale is not touched."""
        from hostwright.apply.rollout.applying import apply_goal

        return apply_goal("provision", self, members, Connections(password), audience, change=change, saved=saved)

    def resume(self, given: RunOptions) -> tuple[str, RunOptions]:
        """The last provision run, and the options with which it goes on where ``given`` says nothing else."""
        from hostwright.apply.rollout.options import resume

        return resume(given, self)

    def removal(self, members: Members) -> Removal:
        """What taking the members' roles away comes to, by the records of the hosts, for ``plan`` and ``remove``."""
        from hostwright.apply.rollout.removal import removal

        return removal(self, members, Connections())

    def remove(
        self,
        members: Members,
        removal: Removal,
        *,
        change: ChangeOptions = UNBOUNDED,
        password: Secret | None = None,
        audience: Audience = NOBODY,
    ) -> RunResults[Outcome]:
        """Take the members' roles away."""
        from hostwright.apply.rollout.applying import apply_goal

        return apply_goal("remove", self, members, Connections(password), audience, change=change, goal=removal)

    def ways_back(self, members: Members, to: str = "") -> Results[WayBack]:
        """The last verified release of each host, or that of a stack, date or digest, for ``rollback``."""
        from hostwright.apply.rollout.rollback import ways_back

        return ways_back(members, Connections(), to)

    def rollback(
        self,
        members: Members,
        *,
        to: str = "",
        change: ChangeOptions = UNBOUNDED,
        password: Secret | None = None,
        audience: Audience = NOBODY,
    ) -> RunResults[Outcome]:
        """Bring members with the stacks of ``ways_back`` to these; ``to`` is what was asked for, for the record."""
        from hostwright.apply.rollout.applying import apply_goal

        return apply_goal("rollback", self, members, Connections(password), audience, change=change, options={"to": to})

    def verify(
        self, members: Members, *, password: Secret | None = None, audience: Audience = NOBODY
    ) -> RunResults[Verdict]:
        """Check every layer of hosts by what it does, after a look that must find nothing to change."""
        from hostwright.verify.hosts import verify

        return verify(self, members, Connections(password), audience)

    def auditor(
        self,
        members: Members,
        options: AuditOptions | None = None,
        *,
        password: Secret | None = None,
        audience: Audience = NOBODY,
    ) -> Auditor:
        """Who audits hosts, again and again where that is wanted, and remembers what was seen."""
        from hostwright.audit.auditor import AuditOptions, Auditor

        return Auditor(self, members, options or AuditOptions(), password=password, audience=audience)

    def audit(
        self, members: Members, options: AuditOptions | None = None, *, password: Secret | None = None
    ) -> FleetAudit:
        """What hosts have and their known problems, kept in the history. Changes nothing on them."""
        return self.auditor(members, options, password=password).audit().audit

    def history(self, members: Members, since: datetime | None = None) -> tuple[HostHistory, ...]:
        """What audits saw of hosts over time."""
        from hostwright.audit.history import History

        archive = History(state_root())
        return tuple(archive.host_history(member.name, since, self.path) for member in members)

    def changes(self, since: datetime, members: Members | None = None) -> FleetDiff:
        """What is otherwise at the last audit than it was before; of these hosts alone where some are given."""
        from hostwright.audit.history import History

        diff = History(state_root()).diff(self.path, since)
        return diff if members is None else diff.on(set(members.by_name))

    def decide(
        self,
        members: Members,
        start: Start | None = None,
        *,
        change: ChangeOptions = UNBOUNDED,
        password: Secret | None = None,
    ) -> Decisions:
        """Which way each host would be rebuilt, by a look at all of them. Changes nothing."""
        from hostwright.rebuild.run import decide

        return decide(self, members, start, Connections(password), change)

    def rebuild(
        self,
        members: Members,
        start: Start | None = None,
        *,
        change: ChangeOptions = UNBOUNDED,
        password: Secret | None = None,
        audience: Audience = NOBODY,
        decided: Callable[[Decisions], None] = lambda _: None,
    ) -> Rebuilt:
        """Bring hosts back from whatever state they are in; ``decided`` is told the ways before any host is changed."""
        from hostwright.rebuild.run import rebuild

        return rebuild(self, members, start, Connections(password), audience, change=change, decided=decided)

    def rebuilds(self, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """The rebuilds that this machine remembers, the oldest first."""
        from hostwright.rebuild.records import Records

        return Records(state_root(), self.path).all(since)

    def stacks(self) -> tuple[ListedStack, ...]:
        """The stacks that can be found, each with what it pins and what was tried with it. No host is asked."""
        from hostwright.plan.stacklist import list_stacks

        return list_stacks(self)

    def mirror(
        self, stack: str = "", source: Path | None = None, *, progress: TransferProgress
    ) -> tuple[Mirrored, ...]:
        """Bring the files of a stack, or of all hosts' stacks, to this machine; what is in the directory ``source``
        comes from there. Raises ``ArtifactError``."""
        from hostwright.plan.stackfiles import mirror

        return mirror(self, stack, source, progress)

    def power(
        self, members: Members, order: Order, *, password: Secret | None = None, audience: Audience = NOBODY
    ) -> RunResults[Powered]:
        """Give an order to the hosts' BMCs, or ask them how the hosts are."""
        from hostwright.rebuild.orders import power

        return power(self, members, order, Connections(password), audience)

    def locks(self, members: Members, *, password: Secret | None = None) -> Results[HostLocks]:
        """The locks of hosts."""
        from hostwright.apply.locking.hostlocks import probe_host_locks

        return probe_host_locks(members, Connections(password), self.path)

    def lock(
        self,
        members: Members,
        reason: str,
        lasts: timedelta,
        *,
        force: bool = False,
        password: Secret | None = None,
    ) -> Results[HostLocks]:
        """Keep hosts from being changed by anybody; ``force`` replaces the lock of somebody else."""
        from hostwright.apply.locking.hostlocks import put_locks

        return put_locks(members, Connections(password), reason, lasts, force=force)

    def unlock(self, members: Members, *, force: bool = False, password: Secret | None = None) -> Results[HostLocks]:
        """Take the locks off hosts; ``force`` takes away the lock of somebody else as well."""
        from hostwright.apply.locking.hostlocks import take_locks_off

        return take_locks_off(members, Connections(password), self.path, force=force)

    def trust(
        self,
        members: Members,
        *,
        fingerprint: str = "",
        ask: Callable[[str], str] | None = None,
        tell: Callable[[Told], None] = lambda _: None,
    ) -> KeyResults:
        """Accept the new keys of reinstalled hosts, where a source says that they are right. ``fingerprint`` is that of
        the only host; ``ask`` puts a question to the operator; ``tell`` hears of each host as soon as it is settled."""
        from hostwright.rebuild.newkeys import trust

        return trust(members, fingerprint=fingerprint, ask=ask, tell=tell)

    def forget(self, members: Members, *, tell: Callable[[Told], None] = lambda _: None) -> KeyResults:
        """Forget the keys of hosts, which are unknown afterwards. No host is asked."""
        from hostwright.rebuild.newkeys import forget

        return forget(members, tell=tell)
