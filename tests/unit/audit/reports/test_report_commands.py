"""Tests of a host on the audit's page: commands to copy, a mark for a lock, a section for each failure."""

from __future__ import annotations

import html
import shlex
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from hostwright.audit.failures import known
from hostwright.audit.failures.document import how_seen
from hostwright.audit.reports.html.commands import commands, locked
from hostwright.audit.reports.html.html import render_html
from hostwright.audit.reports.html.matrix import FAILURES, OPENABLE, failures
from hostwright.plan.host.locks import UNREADABLE, OperatorLock
from tests.unit.audit.reports.test_report_html import Page
from tests.unit.cli.test_tasks import VERBS
from tests.unit.support.audits import EACH, HOSTILE, LINK, WARNING, XID, fleet, host

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LOCK = str(OperatorLock("ann@desk", "RMA", "gpu01", NOW, NOW))


def lines(*args: object, **more: object) -> list[str]:
    return [line.removeprefix("hostwright ") for _, line in commands(host("gpu01", *args, **more), "")]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, []),
        ({"status": "unread", "sentence": "no route"}, ["audit --hosts gpu01", "rebuild --hosts gpu01 --check"]),
        ({"deviations": (LINK,)}, ["plan --hosts gpu01", "provision --hosts gpu01"]),
        ({"findings": (replace(XID, provision=False),)}, ["doctor --hosts gpu01", "rebuild --hosts gpu01 --check"]),
        (
            {"findings": (replace(XID, provision=True),)},
            ["doctor --hosts gpu01", "rebuild --hosts gpu01 --check"],
        ),
        ({"findings": (replace(WARNING, provision=False),)}, ["doctor --hosts gpu01"]),
        ({"notes": (LOCK,)}, ["lock --list --hosts gpu01"]),
    ],
)
def test_a_host_gets_the_commands_that_help_it(more: dict[str, object], wanted: list[str]) -> None:
    assert lines(**more) == [*wanted, "audit.history --hosts gpu01"]


def test_every_command_is_a_verb_with_options_that_it_has() -> None:
    worst = host("gpu01", "unread", sentence="x", findings=(XID,), deviations=(LINK,), notes=(LOCK,))
    for _, line in commands(worst, " --inventory 'my site'"):
        program, verb, *words = shlex.split(line)
        assert program == "hostwright"
        options = VERBS["audit.fleet" if verb == "audit" else verb]
        assert {word[2:] for word in words if word.startswith("--")} <= set(options), line
        assert words[-2:] == ["--inventory", "my site"]


@pytest.mark.parametrize("name", [HOSTILE, "a b", "$(reboot)", "--yes", "@all", "gpu[1-9]", "x;y", "", "-x"])
def test_a_name_that_a_shell_or_a_selection_reads_otherwise_has_none(name: str) -> None:
    assert commands(host(name), "") == []


def test_a_lock_is_seen_by_what_it_says_and_a_drain_is_none() -> None:
    assert locked((LOCK,)) and locked((str(UNREADABLE),))
    assert not locked(("drained by ann@desk since 2026-11-23", "its login shell prints: locked"))
    marks = Page(render_html(fleet(host("gpu01", notes=(LOCK,)), host("gpu02")))).all("svg")
    assert sum(mark.get("aria-label") == "locked" for mark in marks) == 1


def test_every_failure_that_was_met_has_a_section_with_its_hosts() -> None:
    text = render_html(fleet(*EACH))
    rules = {finding.rule for each in EACH for finding in each.findings}
    ids = {attributes.get("id") for _, attributes in Page(text).elements}
    assert {f"failure-{rule}" for rule in rules} <= ids
    (met,) = (one for one in failures(fleet(*EACH).hosts, {}) if one.rule == XID.rule)
    assert [name for _, name in met.hosts] == [
        each.host for each in EACH if XID.rule in {f.rule for f in each.findings}
    ]
    section = text[text.index(f'id="failure-{XID.rule}"') :].split("</article>")[0]
    assert XID.cause in section.replace("&#39;", "'") and XID.link in section


def test_sections_are_bounded_and_the_gravest_and_most_frequent_come_first() -> None:
    rules = [replace(WARNING, rule=f"rule-{number:03}") for number in range(FAILURES + 5)]
    many = [host(f"gpu{number:03}", findings=(*rules, XID)) for number in range(OPENABLE + 3)]
    found = failures(many, {})
    assert (len(found), found[0].rule, found[0].more, len(found[0].hosts)) == (FAILURES, XID.rule, 3, OPENABLE)


def test_a_fleet_without_failures_has_no_section() -> None:
    assert 'id="failures"' not in render_html(fleet(host("gpu01")))


def test_a_section_says_how_the_failure_is_recognised_and_where_that_is_known_from() -> None:
    rule = next(rule for rule in known().rules if rule.sign)
    met = rule.finding(("a line",))
    text = html.unescape(render_html(fleet(host("gpu01", findings=(met,))), rules=known().rules))
    section = text[text.index(f'id="failure-{rule.name}"') :].split("</article>")[0]
    assert rule.source in section
    assert how_seen(rule.sign) in section
    assert how_seen(rule.sign)
