"""What rooms above this one know of a site: further variables, runs and audits, and known failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from hostwright.common.errors import Examination, Finding
from hostwright.inventory import Host
from hostwright.plan.model import RetryRule

if TYPE_CHECKING:
    from hostwright.plan.member import Member, Roster
    from hostwright.transport.root.rootshell import RootShell


class Knowledge(Protocol):
    """Answers what a roster cannot. ``hostwright.fleet`` has the one that knows everything."""

    def check_variables(self, host: Host) -> None:
        """Raise ``InputError`` for further variables of a host that cannot be used."""
        ...

    def check_failures(self, roster: Roster) -> None:
        """Raise ``InputError`` for known failures of its roles that cannot be used."""
        ...

    def named_sets(self, roster: Roster, pattern: str) -> Mapping[str, Iterable[str]]:
        """The hosts that ``@failed`` and the like in a pattern stand for, by name."""
        ...

    def explain(self, roster: Roster, output: str) -> Finding | None:
        """The known problem that the output of something that failed names."""
        ...

    def examine(
        self, member: Member, shell: RootShell, units: Sequence[str] = (), clean: Callable[[str], str] = str
    ) -> Examination | None:
        """Ask a host on which something failed for the signs of known problems, and for the journals of these systemd
        units; ``clean`` masks secrets in what it says. Never an error."""
        ...

    def retry_rules(self, roster: Roster) -> tuple[RetryRule, ...]:
        """Which failures of a step are retried on the host, and which are not whatever else its output says."""
        ...


class NoKnowledge:
    """Knows nothing: for a roster that only reads and plans."""

    def check_variables(self, *_: Any) -> None:
        """Every variable is as good as any."""

    def check_failures(self, *_: Any) -> None:
        """No failure is known."""

    def named_sets(self, *_: Any) -> Mapping[str, Iterable[str]]:
        """No run and no audit is known."""
        return {}

    def explain(self, *_: Any) -> Finding | None:
        """No problem is known."""
        return None

    def examine(self, *_: Any, **__: Any) -> Examination | None:
        """The host is not asked."""
        return None

    def retry_rules(self, *_: Any) -> tuple[RetryRule, ...]:
        """Nothing is retried."""
        return ()
