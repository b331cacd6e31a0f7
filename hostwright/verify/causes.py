"""The known problems of a host that was verified, each once, with the failed checks that it explains. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostwright.common.errors import Finding
from hostwright.verify.verdict import Check, Verdict


@dataclass(frozen=True, slots=True)
class Cause:
    """A known problem, and the failed checks that it explains.

    ``probably``: none of the checks printed its message. It is the only known problem found in their layer.
    """

    finding: Finding
    checks: tuple[Check, ...] = ()
    probably: bool = False


def causes(verdict: Verdict) -> tuple[Cause, ...]:
    """The causes of a verdict: those found on the host, then those that only the output of checks names."""
    bad = [check for check in verdict.checks if not check.passed]
    grave = [finding for finding in (verdict.examination.findings if verdict.examination else ()) if finding.grave]
    found: dict[str, Finding] = {}
    for finding in (*grave, *(check.finding for check in bad if check.finding)):
        found.setdefault(finding.rule, finding)
    explained: dict[str, list[Check]] = {rule: [] for rule in found}
    for check in bad:
        if check.finding:
            explained[check.finding.rule].append(check)
    likely = _likely(grave, [check for check in bad if check.checked and not check.finding])
    return tuple(
        Cause(found[rule], tuple(checks or likely.get(rule, ())), probably=not checks and rule in likely)
        for rule, checks in explained.items()
    )


def _likely(grave: Iterable[Finding], silent: Iterable[Check]) -> dict[str, list[Check]]:
    """Rule → the checks that name no known problem, in a layer in which the host has exactly one."""
    rules: dict[str, list[str]] = {}
    for finding in grave:
        rules.setdefault(finding.layer, []).append(finding.rule)
    likely: dict[str, list[Check]] = {}
    for check in silent:
        if len(rules.get(check.role, ())) == 1:
            likely.setdefault(rules[check.role][0], []).append(check)
    return likely
