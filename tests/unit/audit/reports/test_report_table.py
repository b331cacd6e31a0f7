"""Tests of the audit for a terminal: deviations first, equal hosts on one line, no control characters from hosts."""

import io
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, Group, RenderableType

from hostwright.audit.failures import ForPeople
from hostwright.audit.fleetaudit import Reading
from hostwright.audit.reports.ages import since
from hostwright.audit.reports.diagnosis import next_commands, show_diagnosis
from hostwright.audit.reports.table import next_hosts, show_audit
from hostwright.common.command import Command
from hostwright.common.text import LINE_CHARACTERS, short
from tests.unit.support.audits import EACH, LIAR, LINK, WARNING, XID, fleet, host

DAY = datetime(2026, 11, 18, 12, tzinfo=UTC)


def shown(renderable: RenderableType) -> str:
    out = Console(file=io.StringIO(), width=1000, color_system=None)
    out.print(renderable)
    return out.file.getvalue()


def test_the_headline_counts_hosts_by_state():
    last = shown(show_audit(fleet(), {})).splitlines()[-1]
    assert last == shown(show_audit(fleet(), {}, first=True)).splitlines()[0]
    assert last == (
        "8 hosts in 1.5 s, against tensorflow-2.9: 1 failing, 2 drifted, 1 behind a changed stack, 1 never "
        "provisioned, 1 could not be read, 2 as desired"
    )


def test_failures_come_first_and_equal_hosts_share_a_row():
    lines = shown(show_audit(fleet(), {})).splitlines()
    rows = [line for line in lines if line.startswith("gpu")][:7]
    assert [row.split()[0] for row in rows] == [
        "gpu05", "gpu[03-04]", "gpu07", "gpu08", "gpu06", "gpu01", "gpu02",
    ]  # fmt: skip


def test_where_the_table_does_not_fit_layers_are_listed_by_status():
    ages = {("gpu05", "status", ""): DAY}
    hosts = [host(f"gpu0{number}") for number in (1, 2)]
    failing = host("gpu05", "failing", layers={"gpu": "failing", "cuda": "drift"})
    lines = shown(show_audit(fleet(*hosts, failing), ages, columns=40)).splitlines()
    assert lines[:6] == [
        "gpu05  since 2026-11-18",
        "  ✗ failing  gpu",
        "  ~ drift  cuda",
        "  ✓ as desired  base, driver",
        "gpu[01-02] (2 hosts)",
        "  ✓ as desired  base, driver, cuda, gpu",
    ]
    assert shown(show_audit(fleet(), ages, columns=200)) == shown(show_audit(fleet(), ages))


def test_hosts_of_several_stacks_share_no_row_and_the_stack_stands_beside_them():
    halves = [replace(host(f"gpu0{number}"), stack=("lab", "lab-today")[number > 2]) for number in range(1, 5)]
    table = [line.split() for line in shown(show_audit(fleet(*halves), {})).splitlines()[:3]]
    assert [row[:5] for row in table] == [
        ["hosts", "stack", "base", "driver", "cuda"],
        ["gpu[01-02]", "(2", "hosts)", "lab", "✓"],
        ["gpu[03-04]", "(2", "hosts)", "lab-today", "✓"],
    ]
    narrow = shown(show_audit(fleet(*halves), {}, columns=30)).splitlines()
    assert narrow[::2][:2] == ["gpu[01-02] (2 hosts)  lab", "gpu[03-04] (2 hosts)  lab-today"]


def test_the_same_deviation_of_two_hosts_is_told_once_with_its_age():
    ages = {("gpu03", "deviation", "cuda link /usr/local/cuda"): DAY, ("gpu04", "status", ""): DAY}
    text = shown(show_audit(fleet(), ages))
    assert text.count("/usr/local/cuda-11.4 → /usr/local/cuda-11.2") == 1
    assert "drift since 2026-11-18" in text
    assert "locked by ada: RMA" in text


def test_outliers_of_what_no_stack_pins_are_named():
    text = shown(show_audit(fleet(), {}))
    assert "1 host: 5.10.0-27  gpu03" in text


def test_an_unread_host_says_why():
    assert "connection refused" in shown(show_audit(fleet(), {}))


def test_details_show_values_cards_and_xids():
    text = shown(show_audit(fleet(), {}, details=True))
    for part in ("470.182.03", "Tesla T4", "15 GiB", "Xid 79", "nvidia-smi is silent", "by ada@desk"):
        assert part in text


def test_the_doctor_tells_evidence_cause_and_cure_of_a_failure():
    text = shown(Group(*show_diagnosis(EACH, {("gpu05", "finding", "xid-fatal"): DAY})))
    for part in (
        "xid-fatal",
        "since 2026-11-18",
        "Xid 79 on",
        "a GPU fell off",
        "Drain the host",
        "provisioning does not fix it",
    ):
        assert part in text
    assert "hostwright doctor --explain xid-fatal" in text
    assert "gpu01" in text
    assert "no known problem" in text


def test_the_doctor_tells_what_changed_on_all_hosts_of_a_group():
    ros, grub = "/etc/profile.d/ros.sh", "/etc/default/grub.d/60-ours.cfg"
    alike = [replace(EACH[0], host="gpu08", changed=(ros, grub)), replace(EACH[0], host="gpu09", changed=(ros,))]
    assert f"changed since it was provisioned: {ros}\n" in shown(Group(*show_diagnosis(alike, {})))


def test_control_characters_and_newlines_of_a_host_are_not_printed():
    audit = fleet(EACH[0], LIAR)
    for text in (shown(show_audit(audit, {}, details=True)), shown(Group(*show_diagnosis(audit.hosts, {})))):
        bad = {char for char in text if unicodedata.category(char).startswith("C")} - {"\n"}
        assert not bad
        assert not any(line.strip().startswith("second line") for line in text.splitlines())


def test_a_value_of_kilobytes_is_cut():
    text = shown(show_audit(fleet(host("gpu01", readings=(Reading("base", "kernel", "x" * 9000),))), {}, details=True))
    assert "x" * LINE_CHARACTERS not in text
    assert "…" in text


@given(st.text())
def test_short_text_is_one_bounded_printable_line(text):
    line = short(text)
    assert len(line) <= LINE_CHARACTERS
    assert line.isprintable() or not {unicodedata.category(char)[0] for char in line} & {"C"}


def test_hosts_with_different_ages_give_the_range():
    ages = {("a", "status", ""): DAY, ("b", "status", ""): DAY.replace(day=20)}
    assert since(ages, ("a", "b"), "status", "") == "since 2026-11-18 to 2026-11-20"
    assert since(ages, ("c",), "status", "") == ""


def test_many_hosts_are_named_once_below_what_is_wrong_with_them():
    drifted = [host(f"node{n:03}", "drift", layers={"cuda": "drift"}, deviations=(LINK,)) for n in range(1, 100, 2)]
    well = [host(f"ok{n:03}") for n in range(1, 100, 2)]
    text = shown(show_audit(fleet(*drifted, *well), {}, columns=30))
    assert text.count("node[001,003,") == 1
    assert "ok[001" not in text
    assert [line for line in text.splitlines() if line.startswith("50 hosts")] == [
        *("50 hosts", "50 hosts", "50 hosts  drifted"),
    ]
    behind = [replace(each, deviations=()) for each in drifted]
    assert "node[001,003," in shown(show_audit(fleet(*behind), {})), "no block below names them"


def test_what_is_next_after_an_audit():
    audit = fleet()
    assert [*next_hosts(audit)] == [Command("doctor"), Command("plan")], (
        "nothing leads on from a host that could not be read, unless its error says so"
    )
    refused = host("gpu01", "unread", sentence="sudo wants a password", lead="--ask-become-pass")
    assert next_hosts(fleet(refused)) == {Command("audit", ask_become_pass=True): ["gpu01"]}
    assert [command.verb for command in next_hosts(replace(audit, offline=True))] == ["doctor", "audit", "plan"]
    assert next_hosts(fleet(host("gpu01"))) == {}


def test_the_doctor_ends_with_what_it_comes_to_and_the_gravest_is_nearest():
    lines = shown(Group(*show_diagnosis(EACH, {}))).splitlines()
    assert lines[-1] == "8 hosts: 1 failing, 1 could not be read, 1 with warnings, 5 without known problems"
    titles = [line.split("  ")[1] for line in lines[:-1] if line and not line.startswith(" ")]
    order = ["no known problem", "1 warning", "could not be read", "1 failure"]
    assert [title for title in order if title in titles] == [*dict.fromkeys(titles)]


def test_what_is_next_after_a_doctor():
    fixable, grave = replace(XID, provision=True), replace(XID, provision=False)
    hosts = (
        *(host("a", findings=(fixable,), deviations=(LINK,)), host("b", findings=(grave,)), host("d")),
        *(host("c", deviations=(LINK,)), host("e", "unread", sentence="silent", lead="rebuild --check")),
        *(
            host("f", findings=(replace(WARNING, provision=False),)),
            host("g", "unread", sentence="its key", lead="trust"),
        ),
        *(host("h", findings=(fixable,)), host("i", "unread", sentence="refused")),
    )
    people = host("j", findings=(replace(grave, rule="for-people"),), deviations=(LINK,))
    assert next_commands((*hosts, people), {"for-people": ForPeople()}) == {
        Command("plan"): ["a", "c"],
        Command("rebuild", check=True): ["b", "e", "h"],
        Command("trust"): ["g"],
    }, "where every state is as desired, provisioning fixes nothing; and nothing leads on from what people must do"


def test_provisioning_fixes_what_the_plan_has_something_to_do_for():
    finding = replace(XID, provision=True)
    with_drift, without = host("a", findings=(finding,), deviations=(LINK,)), host("a", findings=(finding,))
    assert "provisioning fixes it; " in shown(Group(*show_diagnosis((with_drift,), {})))
    hindered = replace(with_drift, findings=(finding, replace(XID, rule="other", provision=False)))
    assert "provisioning fixes it once the other failures are fixed; " in shown(Group(*show_diagnosis((hindered,), {})))
    assert "provisioning does not fix it: every state is as desired" in shown(Group(*show_diagnosis((without,), {})))
