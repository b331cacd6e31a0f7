"""What applying needs to know beside the plan, and its outcome. Values."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hostwright.apply.delivery.fetch import DeliveryMeans
from hostwright.apply.delivery.sources.settings import PUSHED, FileSettings
from hostwright.apply.host.connection import Patience
from hostwright.apply.host.scheduling.durations import Durations
from hostwright.common.errors import Unanswered

if TYPE_CHECKING:
    from hostwright.apply.delivery.sources.handout import Handout
    from hostwright.apply.disturb.draining import Hooks
    from hostwright.apply.events import Emit
    from hostwright.common.errors import Acceptance, Examination, Finding
    from hostwright.plan.host.locks import Holder
    from hostwright.plan.host.release import RunStamp
    from hostwright.plan.model import Plan, RetryRule, RoleResult
    from hostwright.stack.stack import Artifact, Stack
    from hostwright.transport.root.rootshell import RootShell


@dataclass(frozen=True, slots=True)
class Settings:
    """What applying needs to know beside the plan."""

    run: RunStamp
    emit: Emit
    locate: Callable[[Artifact], Path]  #: the file of an artifact on this machine; raises ``ArtifactError``
    holder: Holder | None = None  #: in whose name the host is locked; ``None``: it is not
    reboot_timeout_s: float = 1800.0  #: bare metal takes up to half an hour through its firmware
    allow_reboot: bool = True
    local: bool = False  #: the host is this machine, which is never rebooted from itself
    files: FileSettings = PUSHED  #: how the host gets its files
    private: Collection[str] = ()  #: the names of artifacts that no stack pins: they go over SSH alone
    handout: Handout | None = None  #: of the run's files to all of its hosts; without it, nothing is fetched by HTTP
    hooks: Hooks | None = None  #: what takes work off the host and lets it back
    drain: bool = False  #: drain a host that is in use, and wait for it
    force: bool = False  #: disturb running work
    yes: bool = False  #: the operator agrees to what nobody can bring back (``HostPlan.losses``)
    depart: bool = False  #: every role is removed: when all are gone, what Hostwright kept on the host goes too
    undrain: bool = True  #: let work back to a host that is as desired; false: whoever asks does it later
    #: keeps the stack of a verified host on this machine, for the way back; a sentence where it cannot
    keep: Callable[[Stack], str] = lambda _: ""
    #: the known problem that a failed step's output names
    explain: Callable[[str], Finding | None] = lambda _: None
    #: masks secrets in what a host printed
    clean: Callable[[str], str] = str
    #: asks the host for known problems after a failure, and for the journals of these units; ``None``: whoever applies
    #: looks at the host afterwards anyway
    examine: Callable[[RootShell, tuple[str, ...]], Examination | None] | None = None
    again: str = "the same command again"  #: what to do once the cause of a failure is mended
    #: how long steps are expected to take; asked where roles can run side by side
    durations: Callable[[], Durations] = Durations
    #: which failures of a step are retried, and which are not whatever else its output says; read when a job needs it
    retry_rules: Callable[[], tuple[RetryRule, ...]] = tuple
    #: a plan as a file of ``plan --out`` holds it, to compare with that
    as_saved: Callable[[Plan], Plan] = lambda plan: plan
    stopping: Callable[[], bool] = lambda: False  #: whether no further job is to be started
    #: what else is asked of a host that is as desired, before work comes back to it and it counts as done; ``None``:
    #: nothing. It locks the host in the name that it is given, and not where there is none: then it is locked already.
    #: Raises ``NotAccepted`` where that does not hold
    accept: Callable[[Holder | None], tuple[Acceptance, ...]] | None = None
    patience: Patience = field(default_factory=Patience)
    #: of a host that another worker of this run had before and that was lost: the jobs whose end it told. That of
    #: others which the run began there is told, too; ``None``: nobody had it before
    ended: frozenset[str] | None = None

    @property
    def means(self) -> DeliveryMeans:
        """What delivering the host's files needs to know."""
        return DeliveryMeans(self.locate, self.files, self.private, self.handout)

    @property
    def reboots(self) -> bool:
        """Whether the host is rebooted where a state wants it."""
        return self.allow_reboot and not self.local

    def agree(self, host: str, losses: Collection[str]) -> None:
        """Raise ``Unanswered`` where a plan takes away for good what no operator has agreed to lose."""
        if losses and not self.yes:
            gone = " and ".join(losses)
            raise Unanswered(host, f"{gone} would be lost, and nothing brings that back: --yes agrees to it")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one host: the first plan, the results of every role, and what is left to do."""

    host: str
    plan: Plan
    results: tuple[RoleResult, ...] = ()
    left: Plan | None = None  #: the differences after the last round; ``None`` before anything was applied
    reboots: int = 0
    acceptance: tuple[Acceptance, ...] = ()  #: what came of all that ``Settings.accept`` asked

    @property
    def changed(self) -> bool:
        """Whether anything was done on the host."""
        return bool(self.results or self.reboots)

    @property
    def word(self) -> str:
        """The outcome as one of ``events.RESULTS``."""
        if self.left is not None and not self.left.empty:
            return "pending"
        return "changed" if self.changed else "as desired"
