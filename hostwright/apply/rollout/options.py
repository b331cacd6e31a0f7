"""How a run over many hosts goes, as its operator says it, and as its journal keeps it for ``--resume``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from hostwright.apply.rollout.limits import Limits, read_limits
from hostwright.common.errors import InputError
from hostwright.common.places import state_root
from hostwright.plan.member import Members, Roster


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """How far a run may go. Each is a number of hosts, or a share of them such as ``10%``; see ``read_limits``."""

    canary: str = ""
    batch: str = ""
    max_fail: str = ""

    def limits(self, hosts: int, most: int | None = None) -> Limits:
        """The limits for a run of so many hosts, ``most`` of them at once (see ``read_limits``). Raises
        ``InputError``."""
        return read_limits(hosts, canary=self.canary, batch=self.batch, max_fail=self.max_fail, most=most)


LOCAL, DASK = "local", "dask"  #: who works on hosts: this machine, or the workers of a Dask cluster


@dataclass(frozen=True, slots=True)
class Spread:
    """Who works on the hosts of a run: ``executor`` is ``local`` (or empty) or ``dask``, ``scheduler`` the address of
    the cluster's, such as ``tls://gateway1:8786``."""

    executor: str = ""
    scheduler: str = ""

    @property
    def cluster(self) -> str:
        """The address of the cluster's scheduler; empty for this machine. Raises ``InputError``."""
        if self.executor not in ("", LOCAL, DASK):
            raise InputError(f"found {self.executor!r:.40}, expected {LOCAL} or {DASK}", "--executor")
        if self.executor != DASK:
            if self.scheduler and not self.executor:
                raise InputError("it is the scheduler of a Dask cluster: give --executor dask as well", "--scheduler")
            return ""
        if not self.scheduler:
            raise InputError("name the cluster's scheduler: --scheduler tls://HOST:8786", "--executor dask")
        return self.scheduler


HERE = Spread()  #: on this machine


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """How hosts are changed: whether work is drained from them, whether they may reboot, how far the run goes, whether
    the operator agrees to losses that a plan names (``HostPlan.losses``), and who works on them."""

    drain: bool = False
    no_reboot: bool = False
    rollout: RolloutOptions = RolloutOptions()
    yes: bool = False
    spread: Spread = HERE


UNBOUNDED = ChangeOptions()  #: all hosts at once, whatever fails; no work is drained, and hosts may reboot


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run as its journal keeps them, and as ``invoke provision --resume`` takes them up again."""

    hosts: str = ""
    var: tuple[str, ...] = ()  #: KEY=VALUE
    roles: str = ""
    accept_new: bool = False
    force: bool = False
    drain: bool = False
    no_reboot: bool = False
    canary: str = ""
    batch: str = ""
    max_fail: str = ""
    yes: bool = False
    prove: str = ""  #: the level of the proofs that hosts must pass
    executor: str = ""
    scheduler: str = ""

    @classmethod
    def of(cls, roster: Roster, members: Members, change: ChangeOptions = UNBOUNDED) -> Self:
        """The options with which these hosts are changed."""
        return cls(
            hosts=members.pattern,
            var=tuple(f"{key}={value}" for key, value in roster.settings.items()),
            roles=",".join(members.roles),
            accept_new=roster.options.host_keys == "accept-new",
            force=roster.force,
            drain=change.drain,
            no_reboot=change.no_reboot,
            **asdict(change.rollout),
            yes=change.yes,
            **asdict(change.spread),
        )

    @property
    def change(self) -> ChangeOptions:
        """The part that says how hosts are changed."""
        rollout = RolloutOptions(self.canary, self.batch, self.max_fail)
        spread = Spread(self.executor, self.scheduler)
        return ChangeOptions(self.drain, self.no_reboot, rollout, self.yes, spread)

    def recorded(self, **more: object) -> dict[str, Any]:
        """The options that were given, with ``more`` of the verb's own, as JSON values for the journal."""
        given = {**asdict(self), "var": list(self.var), **more}
        return {name: value for name, value in given.items() if value not in ("", None, False, [])}


@cache
def _options_adapter() -> TypeAdapter[RunOptions]:
    return TypeAdapter(RunOptions)


def resume(given: RunOptions, roster: Roster, run: str = "") -> tuple[str, RunOptions]:
    """A provision run on an inventory (``resumable``), and the options that continue it: for the hosts that it left,
    with its own options where ``given`` says nothing.

    Raises ``InputError`` where hosts are given as well, where there is nothing to go on with, where an option of that
    run is not recorded since it held a secret, and where its record is damaged.
    """
    if given.hosts:
        raise InputError("it takes the hosts from the run that it continues; give either it or --hosts", "--resume")
    from hostwright.apply.journal.selecting import to_resume  # only who resumes reads the journal

    last = to_resume(state_root(), roster.path, run)
    gone = [host for host in last.hosts if host not in roster.inventory.hosts]
    if gone:
        raise InputError(f"{', '.join(gone)} of the run {last.run} are no longer in the inventory", "--resume")
    unsaid = [option.name for option in fields(given) if option.name != "hosts" and not getattr(given, option.name)]
    missing = [name for name in last.masked if name in unsaid]
    if missing:
        raise InputError(
            f"the run {last.run} was given secrets with --{missing[0].replace('_', '-')}, which are not recorded: "
            "give them again",
            "--resume",
        )
    try:
        former = _options_adapter().validate_python(last.options)
    except ValidationError as error:
        raise InputError(
            f"the record of the run {last.run} is damaged: provision without --resume", "--resume"
        ) from error
    taken: dict[str, Any] = {name: getattr(former, name) for name in unsaid}
    return last.run, replace(given, **taken, hosts=",".join(last.hosts))
