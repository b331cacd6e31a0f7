"""Tests that matching has bounded cost for any output of a host: every pattern uses RE2, and each line is read once."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import re2

from hostwright.audit.failures.catalogue import Catalogue
from hostwright.common.untrusted import MAX_PATTERN_BYTES, Pattern
from hostwright.plan.roles.site import STANDARD
from tests.unit.support.known import KNOWN, RULES

TREE = STANDARD.parents[1]
#: reads only Hostwright's pages and patterns, and no text of a host
OURS = TREE / "hostwright" / "audit" / "failures" / "document.py"
FILES = sorted(
    path
    for folder in ("hostwright/audit/failures", "roles")
    for path in (TREE / folder).rglob("*.py")
    if "failures" in path.relative_to(TREE).as_posix() and path != OURS
)
LENGTH = 256 * 1024
HOSTILE = (
    "\n", " ", "x" * 79 + "\n", "Retrying (Retry(\n", "sudo: ENOTFOUND\n", "sudo: ENOTFOUND ", "\\n", "\x1b[0m", "é",
    "Nov 22 10:10:10 host p[1]: ", "for kernel 3.\n", "CUDA_VISIBLE_DEVICES ", "I/O error, dev sr0\n",
    "nvme0: mlx5_core ", "\ud800",
)  # fmt: skip


def test_no_file_of_the_failures_has_a_pattern_of_another_engine() -> None:
    for path in FILES:
        tree = ast.parse(path.read_text("utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert (names | modules) & {"re", "regex", "sre_compile"} == set(), path


def test_each_message_is_a_pattern_of_re2_within_its_memory() -> None:
    for source in (source for rule in RULES for source in (rule.pattern, rule.closing, rule.unless) if source):
        regexp: Any = Pattern(f"(?im){source}")._regexp
        assert isinstance(regexp, re2._Regexp), source
        assert regexp.options.max_mem == MAX_PATTERN_BYTES, source


class Counted:
    """A compiled pattern that records the positions from which it searched in a text of this length."""

    def __init__(self, regexp: Any, starts: list[int]) -> None:
        self.regexp, self.starts = regexp, starts

    def search(self, raw: bytes, start: int) -> Any:
        self.starts.append(start)
        return self.regexp.search(raw, start)


@pytest.mark.parametrize("text", ["sudo: ENOTFOUND\n" * 4_000, "sudo: ENOTFOUND " * 4_000])
def test_each_line_is_searched_once_however_many_matches_do_not_count(text: str) -> None:
    starts: list[int] = []
    pattern = Pattern("ENOTFOUND")
    pattern._regexp = Counted(pattern._regexp, starts)
    assert pattern.lines(text, unless=Pattern("sudo: ")) is None
    assert starts == sorted(set(starts))
    assert len(starts) <= text.count("\n") + 1


@pytest.mark.parametrize("seed", HOSTILE)
def test_a_quarter_of_a_mebibyte_of_anything_is_classified(seed: str) -> None:
    KNOWN.classify((seed * LENGTH)[:LENGTH])


def test_a_line_that_the_rule_excepts_is_not_the_failure_and_the_next_one_is() -> None:
    rules = Catalogue(tuple(rule for rule in RULES if rule.name == "no-space"))
    shm = "write /dev/shm/x: no space left on device"
    assert rules.classify(shm) is None
    failure = rules.classify(f"{shm}\nwrite /var/x: no space left on device")
    assert failure is not None
    assert failure.evidence == "write /var/x: no space left on device"
