"""Finds the known problems of a verified host that explain its failed checks. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hostwright.common.errors import Examination, Finding
from hostwright.verify.verdict import Check, Verdict


@dataclass(frozen=True, slots=True)
class Cause:
    """A known problem of a host (``finding``), and the failed checks that the problem explains.

    ``probably`` is true if no check printed the problem's message, and the problem is the only one in the checks'
    layer.
    """

    finding: Finding
    checks: tuple[Check, ...] = ()
    probably: bool = False


def causes(verdict: Verdict) -> tuple[Cause, ...]:
    """Return the causes of failed checks: problems found on the host, then problems only in the output of checks."""
    bad = [check for check in verdict.checks if not check.holds]
    looked = verdict.examination or Examination((), "")
    grave = [finding for finding in looked.findings if finding.grave]
    found: dict[str, Finding] = {finding.rule: finding for finding in grave}
    explained: dict[str, list[Check]] = {rule: [] for rule in found}
    likely = _likely(grave, [check for check in bad if check.checked and not check.finding])
    for check in bad:
        if check.finding is None:
            continue
        rule = _instead(check.finding, grave, looked) or check.finding.rule
        found.setdefault(rule, check.finding)
        explained.setdefault(rule, []).append(check)
    return tuple(_cause(found[rule], tuple(checks or likely.get(rule, ()))) for rule, checks in explained.items())


def _cause(finding: Finding, checks: tuple[Check, ...]) -> Cause:
    printed = any(check.finding and check.finding.rule == finding.rule for check in checks)
    return Cause(finding, checks, probably=bool(checks) and not printed)


def _instead(named: Finding, grave: Iterable[Finding], looked: Examination) -> str:
    rules = [finding.rule for finding in grave if finding.layer == named.layer]
    denied = named.layer and named.rule not in {*looked.not_checked, *(finding.rule for finding in looked.findings)}
    return rules[0] if denied and len(rules) == 1 else ""


def _likely(grave: Iterable[Finding], silent: Iterable[Check]) -> dict[str, list[Check]]:
    rules: dict[str, list[str]] = {}
    for finding in grave:
        rules.setdefault(finding.layer, []).append(finding.rule)
    likely: dict[str, list[Check]] = {}
    for check in silent:
        if len(rules.get(check.role, ())) == 1:
            likely.setdefault(rules[check.role][0], []).append(check)
    return likely
