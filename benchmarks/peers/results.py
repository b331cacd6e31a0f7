"""Parsers for the output of Ansible and pyinfra."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RECAP = re.compile(r"^(\S+)\s+:((?:\s+\w+=\d+)+)\s*$", re.MULTILINE)
_TOTAL = re.compile(r"^\s*Grand total\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*$", re.MULTILINE)
_CONNECTED = re.compile(r"^\s*\[(\S+?)\] Connected\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run of Ansible or pyinfra."""

    hosts: frozenset[str]  #: names of the hosts on which the tool did the work
    changed: int  #: total number of changes on all hosts
    failed: int  #: total number of failed operations and unreachable hosts


def of_ansible(text: str) -> Result:
    """Parse the recap of ``ansible-playbook``. Raises ``ValueError`` if ``text`` has none."""
    rows = {name: dict(_pairs(counts)) for name, counts in _RECAP.findall(text.partition("PLAY RECAP")[2])}
    if not rows:
        raise ValueError("no recap")
    failed = sum(row.get("failed", 0) + row.get("unreachable", 0) for row in rows.values())
    return Result(frozenset(rows), sum(row.get("changed", 0) for row in rows.values()), failed)


def of_pyinfra(text: str) -> Result:
    """Parse the results table of pyinfra. Raises ``ValueError`` if ``text`` has none."""
    total = _TOTAL.search(text)
    if not total:
        raise ValueError("no results")
    _, changed, failed, _ = (0 if number == "-" else int(number) for number in total.groups())
    return Result(frozenset(_CONNECTED.findall(text)), changed, failed)


def wrong(result: Result, hosts: frozenset[str], *, changes: bool) -> str:
    """Return an error text for missing hosts, failures, or changes that ``changes`` does not allow; else empty."""
    if missing := sorted(hosts - result.hosts):
        return f"it did nothing on {', '.join(missing)}"
    if result.failed:
        return f"{result.failed} of its tasks failed"
    if result.changed and not changes:
        return f"{result.changed} of its tasks changed something on hosts that are as desired"
    return ""


def _pairs(counts: str) -> list[tuple[str, int]]:
    return [(name, int(number)) for name, _, number in (pair.partition("=") for pair in counts.split())]
