"""The public API: load an inventory, select hosts, then probe, change or verify them. Every result is a value.

    >>> from pathlib import Path
    >>> from hostwright.fleet import Fleet, Listener
    >>> fleet = Fleet.load(Path("inventory"))
    >>> targets = fleet.targets("@rack3,!gpu05")
    >>> results = fleet.plan(targets)
    >>> [(error.host, error.sentence) for error in results.errors]
    [('gpu03', '127.0.0.1:... refuses the connection...')]
    >>> ended = fleet.verify(targets, view=Listener(lambda event: print(event.host, type(event).__name__)))
    gpu03 HostEnded
    >>> ended.status
    1

``plan``, ``verify``, ``audit`` and ``decide`` change no host. Runs are recorded, resumed and selected like those of the
command line, which uses this API. ``docs/api.md`` lists the methods by purpose, with the values that they return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.apply.delivery.sources.settings import read_file_settings
from hostwright.apply.disturb.draining import read_hooks
from hostwright.apply.disturb.rebooting import read_reboot_timeout
from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.goals import AS_WANTED, Goal
from hostwright.apply.run import NO_VIEW, Listener, Run, RunResults, View
from hostwright.apply.saved.signing import read_signing
from hostwright.common.errors import Examination, Finding, Mistakes
from hostwright.common.places import state_root
from hostwright.common.request import Request
from hostwright.inventory import Host
from hostwright.plan.targets import Knowledge, Roster, TargetHost, Targets
from hostwright.rebuild.ways.means import read_means

if TYPE_CHECKING:
    from hostwright.apply.commands.remote import CommandResult, RemoteCommand
    from hostwright.apply.host.outcome import Outcome
    from hostwright.apply.locking.hostlocks import HostLocks
    from hostwright.apply.rollout.consent import Ask
    from hostwright.apply.rollout.following import Followed
    from hostwright.apply.rollout.removal import Removal
    from hostwright.apply.rollout.rollback import WayBack
    from hostwright.apply.rollout.rollout import Results
    from hostwright.audit.adopting import Adoption
    from hostwright.audit.auditor import AuditOptions, Auditor
    from hostwright.audit.fleetaudit import FleetAudit
    from hostwright.audit.history import FleetDiff, HostHistory
    from hostwright.common.secret import Secret
    from hostwright.plan.model import Facts, Plan, RetryRule
    from hostwright.plan.planning import HostPlan
    from hostwright.plan.roles.sitecheck import SiteCheck
    from hostwright.plan.stacks.fits import HostFits
    from hostwright.plan.stacks.listing import ListedStack
    from hostwright.plan.stacks.packages import PackageSearch
    from hostwright.prove.proving import Proved, ProveOptions
    from hostwright.rebuild.newkeys import KeyResults, Told
    from hostwright.rebuild.orders import Order, Powered
    from hostwright.rebuild.rebuild import Rebuild, Start
    from hostwright.rebuild.run import Decisions, Rebuilt
    from hostwright.stack.bulletins import Read
    from hostwright.stack.rules import HostFacts
    from hostwright.stack.stack import Stack
    from hostwright.stack.store.mirroring import Mirrored, TransferProgress
    from hostwright.stack.store.sources import FileSource
    from hostwright.transport.root.rootshell import RootShell
    from hostwright.verify.verdict import Verdict

__all__ = ["Fleet", "Listener", "Request", "RunResults", "TargetHost", "Targets", "View"]


class _Knowledge(Knowledge):
    """What is known of hosts beyond their stack and roles. A hundred rules of failures are read by who fails."""

    def check_variables(self, host: Host) -> None:
        """Raise ``InputErrors`` for variables that applying and rebuilding cannot use."""
        mistakes = Mistakes()
        for read in (read_file_settings, read_hooks, read_reboot_timeout, read_signing, read_means):
            with mistakes:
                read(host)
        mistakes.refuse()

    def check_failures(self, roster: Roster) -> None:
        """Raise ``InputError`` for known failures that cannot be used."""
        from hostwright.audit.failures import catalogue

        catalogue(roster.roles).check()

    def named_sets(self, roster: Roster, pattern: str) -> Mapping[str, Iterable[str]]:
        """The hosts of the last run by their outcome, and of their last audit."""
        if "@" not in pattern:
            return {}
        from hostwright.audit.history import sets_of

        names = roster.inventory.hosts.keys() | roster.inventory.groups.keys()
        return sets_of(pattern, state_root(), roster.path, names)

    def fitting(self, roster: Roster, facts: HostFacts) -> tuple[Stack, ...]:
        """The stacks that fit a host with these facts, the best first."""
        from hostwright.plan.stacks.fits import fits
        from hostwright.plan.stacks.listing import list_stacks
        from hostwright.stack.ages import day_of

        stacks = {listed.name: listed.stack for listed in list_stacks(roster) if listed.stack}
        found = fits(facts, stacks.values(), roster.roles, roster.advisories, day_of(None), suggest=False)
        return tuple(stacks[one.stack] for one in found if one.fits)

    def explain(self, roster: Roster, output: str) -> Finding | None:
        """The known problem that the output names."""
        from hostwright.audit.failures import catalogue

        return catalogue(roster.roles).explained(output)

    def examine(
        self, target: TargetHost, shell: RootShell, units: Sequence[str] = (), clean: Callable[[str], str] = str
    ) -> Examination:
        """The signs of known problems on a host, and the journals of these units. Never an error."""
        from hostwright.audit.auditing import examine

        return examine(target, shell, units, clean)

    def retry_rules(self, roster: Roster) -> tuple[RetryRule, ...]:
        """Which failures of a step are retried on the host."""
        from hostwright.audit.failures import catalogue

        return catalogue(roster.roles).retry_rules


class Fleet(Roster):
    """An inventory with its stacks and roles, and everything that can be done to its hosts.

    ``targets`` reads all variables of hosts: a mistake is an error before any is touched. ``@failed`` and the like are
    hosts of the last run on this inventory, ``@drifted`` and the like those of each host's last audit. ``password``
    is for sudo on all hosts; without it, each host's own from the inventory. ``ask`` is asked once before
    hosts are changed, and each of them is then changed exactly as it was planned for the question, or refused.
    ``view`` receives the events of a run. The error of one host is in the results and stops no other; ``InputError`` is
    raised for mistakes of the caller.
    """

    knowledge = _Knowledge()

    def check(self, mistakes: Mistakes | None = None) -> SiteCheck:
        """Whether everything that the site holds can be used, also what no host uses yet. No host is contacted.

        ``mistakes`` are those that were collected when the fleet was loaded (``Fleet.load(mistakes=…)``).
        """
        from hostwright.plan.roles.sitecheck import check_site

        return check_site(self, mistakes or Mistakes())

    def explain(self, output: str) -> Finding | None:
        """The known problem that the output of something that failed names: cause, cure, and the line that names it."""
        return self.knowledge.explain(self, output)

    def _run(
        self,
        verb: str,
        targets: Targets,
        request: Request | None = None,
        *,
        password: Secret | None,
        view: View = NO_VIEW,
        files: Mapping[str, Path] | None = None,
    ) -> Run:
        """A run that has not begun."""
        request = self.request_of(targets, request)
        return Run(verb, self, targets, Connections(password), request, view, files or {})

    def plan(self, targets: Targets, *, goal: Goal = AS_WANTED, password: Secret | None = None) -> Results[HostPlan]:
        """Probe hosts and return what ``provision`` would do, or ``remove`` with its goal. Changes nothing."""
        from hostwright.apply.rollout.consent import plan_each

        return plan_each(targets, Connections(password), goal)

    def provision(
        self,
        targets: Targets,
        request: Request | None = None,
        *,
        saved: Mapping[str, Plan] | None = None,
        ask: Ask | None = None,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> RunResults[Outcome]:
        """Bring hosts to their stack. ``saved`` are plans that were shown before: a host that has changed since is not
        touched and counts as failed, one without a plan there is planned anew. With ``request.prove``, the proofs of
        that level are run on each host that is as desired; one whose proofs do not pass counts as failed. With
        ``request.executor``, the workers of a Dask cluster work on the hosts, and this machine decides and records."""
        from hostwright.apply.executors.choosing import executor_for
        from hostwright.apply.rollout.applying import apply_goal

        run, accept = self._run("provision", targets, request, password=password, view=view), None
        if run.request.prove:
            from hostwright.prove.proving import ProofsPass

            accept = ProofsPass.of(run)
        with executor_for(self, targets, run.request, password) as open_executor:
            return apply_goal(run, saved=saved, ask=ask, accept=accept, open_executor=open_executor)

    def resume(self, request: Request, run: str = "") -> tuple[str, Request]:
        """The id of a provision run, by default the last that left hosts, and the request that continues it: with its
        options where ``request`` has the default.

        Workers of a cluster that still work on its hosts let go of them, and what they recorded goes into its journal.
        """
        from hostwright.apply.executors.choosing import take_over_left
        from hostwright.apply.journal.selecting import resumable
        from hostwright.apply.rollout.resuming import resume

        chosen = resumable(state_root(), self.path, run, self.inventory.hosts.keys())
        take_over_left(chosen, self, request)
        return resume(request, self, chosen.run)

    def removal(self, targets: Targets) -> Removal:
        """The goal of ``remove``, also for ``plan``: hosts without these roles, and without those of former stacks."""
        from hostwright.apply.rollout.removal import removal

        return removal(self, targets, Connections())

    def remove(
        self,
        targets: Targets,
        removal: Removal,
        request: Request | None = None,
        *,
        ask: Ask | None = None,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> RunResults[Outcome]:
        """Remove the targets' roles from their hosts; ``removal`` is what ``fleet.removal(targets)`` returned."""
        from hostwright.apply.rollout.applying import apply_goal

        run = self._run("remove", targets, request, password=password, view=view)
        return apply_goal(run, removal, ask=ask)

    def ways_back(self, targets: Targets, to: str = "") -> Results[WayBack]:
        """Where ``rollback`` can bring each host: its last verified release other than the wanted one, or the
        one that ``to`` names by its stack, or by the beginning of its date or digest. Changes nothing."""
        from hostwright.apply.rollout.rollback import ways_back

        return ways_back(targets, Connections(), to)

    def rollback(
        self,
        targets: Targets,
        request: Request | None = None,
        *,
        ask: Ask | None = None,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> RunResults[Outcome]:
        """Bring hosts to the stacks that ``targets`` have, those of ``WayBack.back``."""
        from hostwright.apply.rollout.applying import apply_goal

        return apply_goal(self._run("rollback", targets, request, password=password, view=view), ask=ask)

    def reach(
        self,
        verb: str,
        targets: Targets,
        goal: Goal,
        request: Request | None = None,
        *,
        files: Mapping[str, Path] | None = None,
        ask: Ask | None = None,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> RunResults[Outcome]:
        """Bring hosts to a goal of a role's own ``verb``. ``files`` are those of artifacts that no stack has, by their
        names."""
        from hostwright.apply.rollout.applying import apply_goal

        run = self._run(verb, targets, request, password=password, view=view, files=files)
        return apply_goal(run, goal, ask=ask)

    def verify(self, targets: Targets, *, password: Secret | None = None, view: View = NO_VIEW) -> RunResults[Verdict]:
        """Check that nothing differs from the stack and that each layer works. Changes nothing; recorded as a run."""
        from hostwright.verify.hosts import verify

        return verify(self._run("verify", targets, password=password, view=view))

    def auditor(
        self,
        targets: Targets,
        options: AuditOptions | None = None,
        *,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> Auditor:
        """For auditing the same hosts repeatedly: each call of its ``audit()`` audits them, and keeps the results."""
        from hostwright.audit.auditor import AuditOptions, Auditor

        return Auditor(self, targets, options or AuditOptions(), password=password, view=view)

    def audit(
        self, targets: Targets, options: AuditOptions | None = None, *, password: Secret | None = None
    ) -> FleetAudit:
        """Compare hosts with their stacks, find known problems, and keep the result in the history. Changes no host."""
        return self.auditor(targets, options, password=password).audit().audit

    def prove(
        self,
        targets: Targets,
        options: ProveOptions | None = None,
        *,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> Proved:
        """Run the proofs of the hosts' layers on them, judge each host alone, against its baseline and against the
        hosts with the same device, and keep the figures. Changes nothing; recorded as a run."""
        from hostwright.prove.proving import ProveOptions, prove

        return prove(self._run("prove", targets, password=password, view=view), options or ProveOptions())

    def history(self, targets: Targets, since: datetime | None = None) -> tuple[HostHistory, ...]:
        """What audits saw change on each host, since that time or ever. No host is contacted."""
        from hostwright.audit.history import History

        archive = History(state_root())
        return tuple(archive.host_history(target.name, since, self.path) for target in targets)

    def changes(self, since: datetime, targets: Targets | None = None) -> FleetDiff:
        """What changed between the audits at ``since`` and now, on all hosts or on these. No host is contacted."""
        from hostwright.audit.history import History

        diff = History(state_root()).diff(self.path, since)
        return diff if targets is None else diff.on(set(targets.by_name))

    def decide(
        self,
        targets: Targets,
        start: Start | None = None,
        request: Request | None = None,
        *,
        password: Secret | None = None,
    ) -> Decisions:
        """Probe hosts and return how ``rebuild`` would bring each back, beginning with ``start``. Changes nothing."""
        from hostwright.rebuild.run import decide

        return decide(self._run("rebuild", targets, request, password=password), start)

    def rebuild(
        self,
        targets: Targets,
        start: Start | None = None,
        request: Request | None = None,
        *,
        ask: Ask | None = None,
        password: Secret | None = None,
        view: View = NO_VIEW,
        decided: Callable[[Decisions], None] = lambda _: None,
    ) -> Rebuilt:
        """Bring hosts back from any state. ``decided`` gets all decisions before any host is changed, then ``ask`` is
        asked about what goes beyond repair. A new operating system needs ``ask`` or ``request.yes``: ``InputError``
        without. With ``request.prove``, work comes back to a host only after its proofs of that level have passed."""
        from hostwright.rebuild.run import rebuild

        run = self._run("rebuild", targets, request, password=password, view=view)
        return rebuild(run, start, ask, decided)

    def rebuilds(self, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """The rebuilds recorded on this machine since that time or ever, the oldest first."""
        from hostwright.rebuild.records import Records

        return Records(state_root(), self.path).all(since)

    def stacks(self) -> tuple[ListedStack, ...]:
        """The stacks that can be found, each with what it pins and what was tested with it. No host is contacted."""
        from hostwright.plan.stacks.listing import list_stacks

        return list_stacks(self)

    def fitting_stacks(
        self, targets: Targets, *, ask: bool = True, password: Secret | None = None
    ) -> Results[HostFits]:
        """Which stacks fit these hosts, and which rules refuse the others: by the facts of each host's last audit, and
        without such, or with ``ask``, by its answers now. Changes nothing."""
        from hostwright.audit.stackfits import fitting_stacks

        return fitting_stacks(self, targets, Connections(password), ask=ask)

    def adopt(
        self, targets: Targets, name: str = "", *, replace: bool = False, password: Secret | None = None
    ) -> Adoption:
        """Write a stack file for each group of hosts that are alike and that nobody provisioned: the nearest stack, and
        what differs from it. ``replace`` allows a file that is there to be overwritten. Changes no host."""
        from hostwright.audit.adopting import adopt

        return adopt(self, targets, Connections(password), name=name, replace_file=replace)

    def read_advisories(self, folder: Path) -> Read:
        """Read the bulletins (CSAF) in a directory, and keep their floors beside those that roles know."""
        from hostwright.plan.stacks.advisories import keep_bulletins

        return keep_bulletins(self, folder)

    def mirror(
        self,
        stack: str = "",
        source: FileSource | None = None,
        to: Path | None = None,
        *,
        pythons: Sequence[str] = (),
        search: PackageSearch | None = None,
        progress: TransferProgress,
    ) -> tuple[Mirrored, ...]:
        """Bring the files of a stack, or of the stacks of all hosts, to this machine: from ``source``, or from their
        addresses; and into the directory ``to``, for a machine without a network. Wheels are brought for the Pythons
        that the last audit saw on each host, or for ``pythons``; packages of distributions likewise, or as ``search``
        says. Raises ``ArtifactError`` with all that failed, once the other files are here."""
        from hostwright.audit.history import FactStore
        from hostwright.plan.stacks.files import mirror

        stored = FactStore(state_root())

        def seen(host: str) -> Facts | None:
            known = stored.load(self.path, host)
            return known[0] if known else None

        return mirror(self, stack, source, to, seen=seen, pythons=pythons, search=search, progress=progress)

    def power(
        self, targets: Targets, order: Order, *, password: Secret | None = None, view: View = NO_VIEW
    ) -> RunResults[Powered]:
        """Switch hosts on, off, or off and on through their BMCs, or read their power state (``Order("status")``)."""
        from hostwright.rebuild.orders import power

        return power(self._run("power", targets, password=password, view=view), order)

    def run(
        self,
        targets: Targets,
        command: RemoteCommand,
        request: Request | None = None,
        *,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> RunResults[CommandResult]:
        """Run one command on hosts, as a login user who cannot become root, or as root where the command says so.
        Recorded as a run; Ctrl-C ends the command on every host."""
        from hostwright.apply.commands.running import run_on_hosts

        return run_on_hosts(self._run("run", targets, request, password=password, view=view), command)

    def locks(self, targets: Targets, *, password: Secret | None = None) -> Results[HostLocks]:
        """Who has locked each host, and whose run is changing it. Changes nothing."""
        from hostwright.apply.locking.hostlocks import probe_host_locks

        return probe_host_locks(targets, Connections(password), self.path)

    def lock(
        self, targets: Targets, reason: str, lasts: timedelta, *, force: bool = False, password: Secret | None = None
    ) -> Results[HostLocks]:
        """Lock hosts against changes by anybody; ``force`` replaces another operator's lock."""
        from hostwright.apply.locking.hostlocks import put_locks

        return put_locks(targets, Connections(password), reason, lasts, force=force)

    def unlock(self, targets: Targets, *, force: bool = False, password: Secret | None = None) -> Results[HostLocks]:
        """Remove the locks of hosts; ``force`` removes another operator's too."""
        from hostwright.apply.locking.hostlocks import take_locks_off

        return take_locks_off(targets, Connections(password), self.path, force=force)

    def follow(self, targets: Targets, *, password: Secret | None = None, view: View = NO_VIEW) -> Results[Followed]:
        """Follow the run that works on each host, whoever started it and where, until it ends there. Changes nothing,
        and is not recorded."""
        from hostwright.apply.rollout.following import follow_each

        return follow_each(self._run("follow", targets, password=password, view=view))

    def trust(
        self,
        targets: Targets,
        *,
        fingerprint: str = "",
        ask: Callable[[str], str] | None = None,
        tell: Callable[[Told], None] = lambda _: None,
    ) -> KeyResults:
        """Accept the new keys of reinstalled hosts that are confirmed by ``fingerprint`` (of a single host), by the
        inventory's console command, or by the answer of ``ask`` to a question. ``tell`` is called after each host."""
        from hostwright.rebuild.newkeys import trust

        return trust(targets, fingerprint=fingerprint, ask=ask, tell=tell)

    def forget(self, targets: Targets, *, tell: Callable[[Told], None] = lambda _: None) -> KeyResults:
        """Delete the known keys of hosts, which are unknown afterwards. No host is contacted."""
        from hostwright.rebuild.newkeys import forget

        return forget(targets, tell=tell)
