"""Tests of changes in a fleet between audits, and of the trend by day."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hostwright.audit.fleetaudit import Reading
from hostwright.audit.history import FleetChange, FleetDiff, History
from tests.unit.audit.history.test_history import CARD_1, CUDA, LINK, XID, audit, driver, filled, host, on, unread

OLD = (driver("470.182.03"), CUDA)


def changed(diff: FleetDiff) -> list[tuple[str, str | None, str | None, tuple[str, ...]]]:
    return [
        (change.kind, change.before, change.after, change.hosts) for change in diff.changes if change.kind != "layer"
    ]


def test_equal_changes_of_many_hosts_are_one(tmp_path: Path):
    names = [f"gpu{number:02}" for number in range(1, 31)]
    before = audit(0, *(host(name, readings=OLD) for name in names), host("gpu99"))
    history = filled(tmp_path, before, audit(5, *(host(name) for name in names), host("gpu99")))
    diff = history.diff("inventory", on(1))
    assert diff.changes == (FleetChange("reading", "driver", "loaded", "470.182.03", "470.256.02", tuple(names)),)
    assert (diff.since, diff.until) == (on(0), on(5))
    assert diff.values == diff.changes


def test_hosts_that_left_their_stack_and_hosts_that_came_to_it(tmp_path: Path):
    drifted = {"status": "drift", "deviations": (LINK,)}
    history = filled(
        tmp_path,
        audit(0, host("gpu01"), host("gpu02", **drifted), host("gpu03"), host("gpu04", "failing", findings=(XID,))),
        audit(5, host("gpu01", **drifted), host("gpu02"), unread("gpu03"), host("gpu04", "failing", findings=(XID,))),
    )
    diff = history.diff("inventory", on(0))
    assert (diff.left, diff.reached, diff.unread) == (("gpu01",), ("gpu02",), ("gpu03",))
    assert changed(diff) == [
        ("deviation", None, "/usr/local/cuda-11.4", ("gpu01",)),
        ("deviation", "/usr/local/cuda-11.4", None, ("gpu02",)),
        ("status", "desired", "drift", ("gpu01",)),
        ("status", "drift", "desired", ("gpu02",)),
        ("status", "desired", "unread", ("gpu03",)),
    ]
    assert diff.findings == ()


def test_findings_and_cards(tmp_path: Path):
    other = replace(CARD_1, serial="177")
    history = filled(
        tmp_path, audit(0, host(gpus=(CARD_1,))), audit(1, host(status="failing", findings=(XID,), gpus=(other,)))
    )
    diff = history.diff("inventory", on(0))
    (finding,) = diff.findings
    assert (finding.name, finding.before, finding.after) == ("xid-fatal", None, "grave")
    (card,) = diff.values
    assert card.name == CARD_1.bus
    assert card.before is not None and "132" in card.before
    assert card.after is not None and "177" in card.after
    assert history.diff("inventory", on(0), on(0.5)).changes == ()


def test_hosts_that_appeared_and_hosts_that_nobody_looked_at_again(tmp_path: Path):
    history = filled(
        tmp_path,
        audit(0, host("long-gone")),
        audit(40, host("gpu01"), host("gpu02")),
        audit(41, host("gpu01"), host("gpu03")),
    )
    diff = history.diff("inventory", on(40))
    assert (diff.came, diff.unseen, diff.changes) == (("gpu03",), ("gpu02",), ())


def test_a_value_that_changed_and_changed_back_is_no_difference(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()), audit(1, host(readings=OLD)), audit(2, host()))
    assert history.diff("inventory", on(0)).changes == ()
    assert len(history.diff("inventory", on(1)).changes) == 1
    assert len(history.diff("inventory", on(0), on(1)).changes) == 1


def test_the_time_of_a_provisioning_is_each_hosts_own(tmp_path: Path):
    history = filled(
        tmp_path, *(audit(day, host(readings=[Reading("release", "at", f"2026-11-0{day + 1}")])) for day in range(2))
    )
    assert history.diff("inventory", on(0)).changes == ()


def test_a_diff_from_before_the_first_audit_begins_with_it(tmp_path: Path):
    history = filled(tmp_path, audit(0, host(readings=OLD)), audit(1, host()), audit(2, host()))
    diff = history.diff("inventory", on(-100))
    assert (diff.since, len(diff.changes)) == (on(0), 1)


def test_a_diff_without_two_audits_is_empty(tmp_path: Path):
    assert History(tmp_path).diff("inventory", on(0)) == FleetDiff()
    history = filled(tmp_path, audit(0, host(), unread("gpu02")))
    assert history.diff("inventory", on(3)) == FleetDiff(on(0), on(0), unread=("gpu02",))


def test_a_trend_counts_the_hosts_of_each_day_by_status_and_version(tmp_path: Path):
    history = filled(
        tmp_path,
        audit(0, host("gpu01", readings=OLD), host("gpu02", readings=OLD)),
        audit(1, host("gpu01"), unread("gpu02")),
        audit(1.1, host("gpu01", status="drift")),
        audit(3, host("gpu01"), host("gpu02")),
    )
    points = history.trend("inventory", 30)
    assert [(point.day, point.counts) for point in points] == [
        ("2026-11-01", {"desired": 2}),
        ("2026-11-02", {"drift": 1, "unread": 1}),
        ("2026-11-04", {"desired": 2}),
    ]
    assert [point.versions["driver loaded"] for point in points] == [
        {"470.182.03": 2},
        {"470.182.03": 1, "470.256.02": 1},
        {"470.256.02": 2},
    ]
    assert [point.day for point in history.trend("inventory", 2)] == ["2026-11-04"]
    assert history.trend("inventory", 3)[0].versions["driver loaded"] == {"470.182.03": 1, "470.256.02": 1}


def test_unaudited_host_leaves_the_trend_after_a_week(tmp_path: Path):
    history = filled(
        tmp_path, audit(0, host("gpu01"), host("gpu02")), *(audit(day, host("gpu01")) for day in range(1, 12))
    )
    counts = [point.counts["desired"] for point in history.trend("inventory", 30)]
    assert counts == [2] * 8 + [1] * 4
    assert [point.counts["desired"] for point in history.trend("inventory", 5)] == [2] + [1] * 4
    assert [point.versions["cuda nvcc"] for point in history.trend("inventory", 4)] == [{"V11.2.152": 1}] * 4


def test_what_is_different_on_every_host_is_not_charted(tmp_path: Path):
    fleet = [host(f"gpu{number}", readings=[Reading("base", "serial", str(number)), CUDA]) for number in range(21)]
    (point,) = filled(tmp_path, audit(0, *fleet)).trend("inventory", 30)
    assert point.versions == {"cuda nvcc": {"V11.2.152": 21}}


def test_a_fleet_without_audits_has_no_trend(tmp_path: Path):
    assert History(tmp_path).trend("inventory", 30) == ()
