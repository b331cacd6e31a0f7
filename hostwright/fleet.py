"""The public API: load an inventory, select hosts, then probe, change or verify these hosts. Every result is a value.

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

``plan``, ``verify``, ``audit`` and ``decide`` change no host. The command line uses this API. ``docs/api.md`` lists the
methods by purpose, with their return values.
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
    """The failure rules, settings and records of a site. The methods import their modules late, because the modules are
    needed only after a failure.
    """

    def check_variables(self, host: Host) -> None:
        mistakes = Mistakes()
        for read in (read_file_settings, read_hooks, read_reboot_timeout, read_signing, read_means):
            with mistakes:
                read(host)
        mistakes.refuse()

    def check_failures(self, roster: Roster) -> None:
        from hostwright.audit.failures import catalogue

        catalogue(roster.roles).check()

    def named_sets(self, roster: Roster, pattern: str) -> Mapping[str, Iterable[str]]:
        if "@" not in pattern:
            return {}
        from hostwright.audit.history import sets_of

        names = roster.inventory.hosts.keys() | roster.inventory.groups.keys()
        return sets_of(pattern, state_root(), roster.path, names)

    def fitting(self, roster: Roster, facts: HostFacts) -> tuple[Stack, ...]:
        from hostwright.plan.stacks.fits import fits
        from hostwright.plan.stacks.listing import list_stacks
        from hostwright.stack.ages import day_of

        stacks = {listed.name: listed.stack for listed in list_stacks(roster) if listed.stack}
        found = fits(facts, stacks.values(), roster.roles, roster.advisories, day_of(None), suggest=False)
        return tuple(stacks[one.stack] for one in found if one.fits)

    def explain(self, roster: Roster, output: str) -> Finding | None:
        from hostwright.audit.failures import catalogue

        return catalogue(roster.roles).explained(output)

    def examine(
        self, target: TargetHost, shell: RootShell, units: Sequence[str] = (), clean: Callable[[str], str] = str
    ) -> Examination:
        from hostwright.audit.auditing import examine

        return examine(target, shell, units, clean)

    def retry_rules(self, roster: Roster) -> tuple[RetryRule, ...]:
        from hostwright.audit.failures import catalogue

        return catalogue(roster.roles).retry_rules


class Fleet(Roster):
    """An inventory with its stacks and roles, and all operations on its hosts.

    ``targets`` checks all variables of the selected hosts before any host is contacted. In a pattern for ``targets``,
    ``@failed`` selects hosts by their outcome in the last run on this inventory, and ``@drifted`` by the status of
    their last audit. Methods share these arguments:

    - ``password``: the sudo password for all hosts; without it, the password of each host in the inventory.
    - ``ask``: called once before any host is changed; it raises an error to refuse. Each host is then changed exactly
      as planned for the question; a host whose plan has changed since then is refused.
    - ``view``: receives the events of the run.

    An error of one host is part of the results, and the work on other hosts continues. Mistakes of the caller raise
    ``InputError``.
    """

    knowledge = _Knowledge()

    def check(self, mistakes: Mistakes | None = None) -> SiteCheck:
        """Check all files of the site, including those that no host uses. Contacts no host.

        ``mistakes`` contains the mistakes that ``Fleet.load(mistakes=…)`` collected.
        """
        from hostwright.plan.roles.sitecheck import check_site

        return check_site(self, mistakes or Mistakes())

    def explain(self, output: str) -> Finding | None:
        """Return the known problem that ``output`` of a failed command matches: cause, fix, and the matching line."""
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
        request = self.request_of(targets, request)
        return Run(verb, self, targets, Connections(password), request, view, files or {})

    def plan(self, targets: Targets, *, goal: Goal = AS_WANTED, password: Secret | None = None) -> Results[HostPlan]:
        """Probe hosts and plan the changes of ``provision``, or of ``remove`` with the goal that ``removal`` returns.

        Changes nothing.
        """
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
        """Install the stack of each host in ``targets``.

        ``saved`` has plans by host, to apply exactly as shown: a host that has changed since then is not changed and
        counts as failed. With ``request.prove``, the proofs of that level run on each host that is as desired; a host
        whose proofs do not pass counts as failed. With ``request.executor``, workers of a Dask cluster connect to the
        hosts.
        """
        from hostwright.apply.executors.choosing import executor_for
        from hostwright.apply.rollout.applying import apply_goal

        run, accept = self._run("provision", targets, request, password=password, view=view), None
        if run.request.prove:
            from hostwright.prove.proving import ProofsPass

            accept = ProofsPass.of(run)
        with executor_for(self, targets, run.request, password) as open_executor:
            return apply_goal(run, saved=saved, ask=ask, accept=accept, open_executor=open_executor)

    def resume(self, request: Request, run: str = "") -> tuple[str, Request]:
        """Return the ID of a provision run to continue, and a request for its unfinished hosts.

        ``run`` is an ID; the default is the last run with unfinished hosts. The run's options replace defaults in
        ``request``. Workers of a cluster that still work on the run's hosts are stopped, and their records are added to
        the run's journal.
        """
        from hostwright.apply.executors.choosing import take_over_left
        from hostwright.apply.journal.selecting import resumable
        from hostwright.apply.rollout.resuming import resume

        chosen = resumable(state_root(), self.path, run, self.inventory.hosts.keys())
        take_over_left(chosen, self, request)
        return resume(request, self, chosen.run)

    def removal(self, targets: Targets) -> Removal:
        """Return the goal of ``remove``: hosts without the roles of ``targets`` and of earlier stacks."""
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
        """Remove the roles of ``targets`` from the hosts. ``removal`` is the result of ``fleet.removal(targets)``."""
        from hostwright.apply.rollout.applying import apply_goal

        run = self._run("remove", targets, request, password=password, view=view)
        return apply_goal(run, removal, ask=ask)

    def ways_back(self, targets: Targets, to: str = "") -> Results[WayBack]:
        """Find the release to which ``rollback`` can return each host. Changes nothing.

        The default is the last verified release that differs from the inventory's stack. ``to`` names another release
        by stack, or by the beginning of its date or digest.
        """
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
        """Return hosts to earlier stacks. ``targets`` has the ``WayBack.back`` of each host (see ``ways_back``)."""
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
        """Change hosts until they meet ``goal``, for the verb ``verb`` that a role defines.

        ``files`` maps names of artifacts that no stack contains to their files.
        """
        from hostwright.apply.rollout.applying import apply_goal

        run = self._run(verb, targets, request, password=password, view=view, files=files)
        return apply_goal(run, goal, ask=ask)

    def verify(self, targets: Targets, *, password: Secret | None = None, view: View = NO_VIEW) -> RunResults[Verdict]:
        """Check that hosts match their stacks and that each layer works. Changes nothing. The journal records the
        check.
        """
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
        """Return an auditor for repeated audits of the same hosts. Each call of the auditor's method ``audit`` stores
        the results.
        """
        from hostwright.audit.auditor import AuditOptions, Auditor

        return Auditor(self, targets, options or AuditOptions(), password=password, view=view)

    def audit(
        self, targets: Targets, options: AuditOptions | None = None, *, password: Secret | None = None
    ) -> FleetAudit:
        """Compare hosts with their stacks, find known problems, and store the results. Changes no host."""
        return self.auditor(targets, options, password=password).audit().audit

    def prove(
        self,
        targets: Targets,
        options: ProveOptions | None = None,
        *,
        password: Secret | None = None,
        view: View = NO_VIEW,
    ) -> Proved:
        """Run the proofs (measurements) of each host's layers, and store the results. Changes nothing. The journal
        records the proofs.

        A host is judged by its own measurements, against its baseline, and against hosts with the same device.
        """
        from hostwright.prove.proving import ProveOptions, prove

        return prove(self._run("prove", targets, password=password, view=view), options or ProveOptions())

    def history(self, targets: Targets, since: datetime | None = None) -> tuple[HostHistory, ...]:
        """Return the changes that audits found on each host since the time ``since``; by default, all. Contacts no
        host.
        """
        from hostwright.audit.history import History

        archive = History(state_root())
        return tuple(archive.host_history(target.name, since, self.path) for target in targets)

    def changes(self, since: datetime, targets: Targets | None = None) -> FleetDiff:
        """Return the differences between each host's audit at the time ``since`` and its latest audit. Contacts no
        host.

        ``targets`` limits the result to these hosts.
        """
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
        """Probe hosts and decide how ``rebuild`` would fix each host. Changes nothing.

        ``start`` is the value of ``--from``.
        """
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
        """Rebuild hosts from any state, each with the least invasive method that works.

        Before any host is changed, ``decided`` receives all decisions, and ``ask`` asks for consent to every method
        except repair. Raises ``InputError`` if a new operating system may be needed without ``ask`` and without
        ``request.yes``. With ``request.prove``, a host returns to service only after it has passed the proofs of that
        level.
        """
        from hostwright.rebuild.run import rebuild

        run = self._run("rebuild", targets, request, password=password, view=view)
        return rebuild(run, start, ask, decided)

    def rebuilds(self, since: datetime | None = None) -> tuple[Rebuild, ...]:
        """Return the rebuilds recorded on this machine since the time ``since``, oldest first; by default, all."""
        from hostwright.rebuild.records import Records

        return Records(state_root(), self.path).all(since)

    def stacks(self) -> tuple[ListedStack, ...]:
        """Return all stacks, each with its pinned versions and its tested configurations. Contacts no host."""
        from hostwright.plan.stacks.listing import list_stacks

        return list_stacks(self)

    def fitting_stacks(
        self, targets: Targets, *, ask: bool = True, password: Secret | None = None
    ) -> Results[HostFits]:
        """Return the stacks that fit each host, and the rules that refuse the other stacks. Changes nothing.

        With ``ask``, all hosts are probed. Otherwise the facts of a host's last audit are used, and only hosts without
        such facts are probed.
        """
        from hostwright.audit.stackfits import fitting_stacks

        return fitting_stacks(self, targets, Connections(password), ask=ask)

    def adopt(
        self, targets: Targets, name: str = "", *, replace: bool = False, password: Secret | None = None
    ) -> Adoption:
        """Write a stack file for each group of equal hosts that Hostwright did not provision. Changes no host.

        ``name`` is the name of a single new stack; by default, a name is chosen. ``replace`` allows overwriting an
        existing file.
        """
        from hostwright.audit.adopting import adopt

        return adopt(self, targets, Connections(password), name=name, replace_file=replace)

    def read_advisories(self, folder: Path) -> Read:
        """Read the security bulletins (CSAF) in ``folder``, and store the minimum versions that the
        bulletins require.
        """
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
        """Fetch the files of ``stack``, or of the stacks of all hosts, to this machine.

        Files are taken from ``source`` if available there, else from their URLs. The files are also copied to the
        directory ``to``, for a machine without a network. Wheels are fetched for the Python versions ``pythons``, and
        packages of distributions as ``search`` defines; both default to the values in each host's last audit. Raises
        ``ArtifactError`` with all failures, after the other files have been fetched.
        """
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
        """Switch hosts on or off or power-cycle them through their BMCs, or read their power states
        (``Order("status")``).
        """
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
        """Run one command on hosts as the login user, who cannot become root, or as root if ``command.root`` is set.

        The command is recorded in the journal. Ctrl-C ends the command on every host.
        """
        from hostwright.apply.commands.running import run_on_hosts

        return run_on_hosts(self._run("run", targets, request, password=password, view=view), command)

    def locks(self, targets: Targets, *, password: Secret | None = None) -> Results[HostLocks]:
        """Return each host's lock by an operator, and the run that is changing the host. Changes nothing."""
        from hostwright.apply.locking.hostlocks import probe_host_locks

        return probe_host_locks(targets, Connections(password), self.path)

    def lock(
        self, targets: Targets, reason: str, lasts: timedelta, *, force: bool = False, password: Secret | None = None
    ) -> Results[HostLocks]:
        """Lock hosts against all changes for the duration ``lasts``. ``force`` replaces another operator's lock."""
        from hostwright.apply.locking.hostlocks import put_locks

        return put_locks(targets, Connections(password), reason, lasts, force=force)

    def unlock(self, targets: Targets, *, force: bool = False, password: Secret | None = None) -> Results[HostLocks]:
        """Remove the locks of hosts; with ``force``, also the locks of other operators."""
        from hostwright.apply.locking.hostlocks import take_locks_off

        return take_locks_off(targets, Connections(password), self.path, force=force)

    def follow(self, targets: Targets, *, password: Secret | None = None, view: View = NO_VIEW) -> Results[Followed]:
        """Follow the run in progress on each host until it ends there, even if another operator started it.

        Changes nothing and is not recorded.
        """
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
        """Replace the recorded SSH host keys of reinstalled hosts by the new keys, if these are confirmed.

        ``fingerprint`` (for a single host), the console command in the inventory, or the operator's answer to ``ask``
        confirms a key. ``tell`` is called with the result of each host.
        """
        from hostwright.rebuild.newkeys import trust

        return trust(targets, fingerprint=fingerprint, ask=ask, tell=tell)

    def forget(self, targets: Targets, *, tell: Callable[[Told], None] = lambda _: None) -> KeyResults:
        """Delete the recorded SSH host keys of hosts. ``tell`` is called with each host's result. Contacts no host."""
        from hostwright.rebuild.newkeys import forget

        return forget(targets, tell=tell)
