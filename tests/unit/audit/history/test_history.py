"""Tests that the history stores changes: values as spans. A host that could not be read ends no span."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostwright.audit.fleetaudit import Deviation, FleetAudit, HostAudit, Layer, NotChecked, Reading, Status
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.history import History, Item
from hostwright.audit.history.items import CARD, READING
from hostwright.audit.judging.alike import NOT_ASKED
from hostwright.common.errors import Finding

FIRST = datetime(2026, 11, 1, 6, tzinfo=UTC)
LAYERS = ("driver", "cuda", "gpu")
LINK = Deviation("cuda", "link /usr/local/cuda", "/usr/local/cuda-11.4", "/usr/local/cuda-11.2", "drift")
XID = Finding("xid-fatal", "gpu", True, ("Xid 79 on 0000:3b:00",), "it fell off the bus", "cycle its power", False, "")
CARD_1 = Gpu(0, "0000:3b:00.0", "GPU-1", "Tesla T4", "132", "90.04")


def driver(version: str, want: str | None = "470.256.02") -> Reading:
    return Reading("driver", "loaded", version, want)


CUDA = Reading("cuda", "nvcc", "V11.2.152", "V11.2.152")


def host(
    name: str = "gpu01",
    status: Status = "desired",
    readings: Iterable[Reading] = (driver("470.256.02"), CUDA),
    *,
    layers: Iterable[str] = LAYERS,
    **more,
) -> HostAudit:
    audit = HostAudit(name, "tensorflow-2.9", "", status, readings=tuple(readings), **more)
    return replace(audit, layers=tuple(Layer(layer, "desired") for layer in layers))


def unread(name: str = "gpu01", sentence: str = "connection refused") -> HostAudit:
    layers = tuple(Layer(layer, "unread") for layer in LAYERS)
    return HostAudit(name, "tensorflow-2.9", "", "unread", sentence, layers)


def audit(day: float, *hosts: HostAudit, inventory: str = "inventory", **more) -> FleetAudit:
    """An audit on this day of the history; its hosts were read in its first minute."""
    at = FIRST + timedelta(days=day)
    seen = (at + timedelta(seconds=30)).isoformat(timespec="seconds")
    audited = tuple(replace(host, at=host.at or seen) for host in hosts)
    return FleetAudit(at.isoformat(timespec="seconds"), inventory, audited, took_s=1.5, **more)


def filled(root: Path, *audits: FleetAudit) -> History:
    history = History(root)
    for audit in audits:
        history.add(audit)
    return history


def on(day: float) -> datetime:
    return FIRST + timedelta(days=day)


def spans(history: History, kind: str = READING) -> list[tuple[str, str, int, int | None]]:
    """Name, value, and the audits between which the value held."""
    with closing(sqlite3.connect(history.path)) as db:
        return db.execute(
            "SELECT name, have, since, until FROM span JOIN fact ON fact.id = fact JOIN subject ON "
            "subject.id = span.subject WHERE kind = ? ORDER BY name, since, have",
            (kind,),
        ).fetchall()


def told(history: History, name: str = "gpu01", since: datetime | None = None) -> list[str]:
    """The history of a host as text."""
    events = history.host_history(name, since, "inventory").events
    return [f"{(event.at - FIRST).days} {event.sentence}" for event in events]


def values(history: History, number: int, name: str = "gpu01", kind: str = READING) -> set[str]:
    return {item.have for item in history.state(number)[name] if item.kind == kind}


def test_an_unchanged_value_adds_no_row(tmp_path: Path):
    history = filled(tmp_path, *(audit(day, host()) for day in range(5)))
    assert spans(history) == [("loaded", "470.256.02", 1, None), ("nvcc", "V11.2.152", 1, None)]


def test_a_change_ends_a_span_and_begins_another(tmp_path: Path):
    old = host(readings=[driver("470.182.03"), CUDA])
    history = filled(tmp_path, audit(0, old), audit(1, old), audit(2, host()))
    assert spans(history) == [
        ("loaded", "470.182.03", 1, 3),
        ("loaded", "470.256.02", 3, None),
        ("nvcc", "V11.2.152", 1, None),
    ]
    assert told(history) == ["0 status: desired", "2 driver loaded: 470.182.03 → 470.256.02"]


def test_unread_host_keeps_its_values_and_is_marked(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()), audit(1, unread()), audit(2, host()))
    assert spans(history) == [("loaded", "470.256.02", 1, None), ("nvcc", "V11.2.152", 1, None)]
    assert history.state(2) == {"gpu01": {Item("status", "", "", "unread")}}
    assert told(history) == [
        "0 status: desired",
        "1 status: desired → unread (connection refused)",
        "2 status: unread → desired",
    ]


def test_missed_change_shows_when_the_host_is_read_again(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()), audit(1, unread()), audit(2, host(readings=[driver("none"), CUDA])))
    assert told(history)[-1] == "2 driver loaded: 470.256.02 → none"


def test_unread_layer_is_not_an_unread_host(tmp_path: Path):
    partly = replace(host(status="unread"), layers=(Layer("driver", "desired"), Layer("cuda", "unread")))
    history = filled(tmp_path, audit(0, partly))
    assert values(history, 1) == {"470.256.02", "V11.2.152"}


def test_narrowed_roles_end_nothing_of_other_layers(tmp_path: Path):
    whole = host(status="drift", deviations=(LINK,), findings=(XID,), gpus=(CARD_1,))
    narrow = host(readings=[driver("470.256.02")], layers=["driver"])
    history = filled(tmp_path, audit(0, whole), audit(1, narrow), audit(2, whole))
    assert spans(history) == [("loaded", "470.256.02", 1, None), ("nvcc", "V11.2.152", 1, None)]
    assert values(history, 2) == {"470.256.02"}
    assert {item.kind for item in history.state(2)["gpu01"]} == {"status", "stack", "layer", "reading"}
    assert history.ages("inventory")["gpu01", "deviation", "cuda link /usr/local/cuda"] == on(0)
    assert not [line for line in told(history) if "link" in line and "again" in line]


def test_a_rule_that_could_not_be_checked_does_not_end_its_finding(tmp_path: Path):
    silent = host(not_checked=(NotChecked("gpu", "xid-fatal", "the kernel log cannot be read"),))
    history = filled(tmp_path, audit(0, host(findings=(XID,))), audit(1, silent), audit(2, host()))
    assert values(history, 2, kind="finding") == set()
    assert spans(history, "finding") == [("xid-fatal", "grave", 1, 3)]
    assert told(history)[1:] == ["0 gpu xid-fatal: found (grave)", "2 gpu xid-fatal: no longer found"]


def test_a_state_that_was_not_asked_for_does_not_end_its_deviation(tmp_path: Path):
    silent = host(not_checked=(NotChecked("cuda", "Link", NOT_ASKED),))
    history = filled(tmp_path, audit(0, host(deviations=(LINK,))), audit(1, silent), audit(2, host()))
    assert values(history, 2, kind="deviation") == set()
    assert told(history)[1:] == [
        "0 cuda link /usr/local/cuda: /usr/local/cuda-11.4, not /usr/local/cuda-11.2 (drift)",
        "2 cuda link /usr/local/cuda: as desired again",
    ]


def test_a_value_that_was_not_asked_for_in_between_is_no_change(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()), audit(1, host(readings=[driver("470.256.02")])), audit(2, host()))
    assert values(history, 2) == {"470.256.02"}
    assert told(history) == ["0 status: desired"]


def test_skipped_layers_are_compared_with_their_last_values(tmp_path: Path):
    later = host(readings=[CUDA, driver("none")])
    history = filled(tmp_path, audit(0, host()), audit(1, host(readings=[CUDA])), audit(2, later))
    assert told(history)[1:] == ["2 driver loaded: 470.256.02 → none"]
    (change,) = history.diff("inventory", on(1)).changes
    assert (change.before, change.after, change.hosts) == ("470.256.02", "none", ("gpu01",))


def test_a_swapped_card_shows(tmp_path: Path):
    other = replace(CARD_1, serial="177", uuid="GPU-2")
    history = filled(
        tmp_path, audit(0, host(gpus=(CARD_1,))), audit(1, host(gpus=(other,))),
        audit(2, host(readings=[Reading("gpu", "count", "0")])),
    )  # fmt: skip
    assert told(history)[1:] == [
        "1 card 0000:3b:00.0: serial 132 → 177, GPU-1 → GPU-2",
        "2 card 0000:3b:00.0: Tesla T4, serial 177, GPU-2, VBIOS 90.04 → gone",
    ]


def test_cards_that_nvidia_smi_does_not_tell_are_not_gone(tmp_path: Path):
    history = filled(tmp_path, audit(0, host(gpus=(CARD_1,))), audit(1, host()))
    assert [until for *_, until in spans(history, CARD)] == [None]
    assert values(history, 2, kind=CARD) == set()


def test_a_card_that_the_driver_cannot_identify_for_a_while_is_neither_gone_nor_another(tmp_path: Path):
    lost = replace(CARD_1, uuid="", serial="", vbios="", model="", fault="GPU is lost")
    again = host(gpus=(CARD_1,))
    history = filled(tmp_path, audit(0, again), audit(1, host(gpus=(lost,))), audit(2, again))
    assert [(since, until) for *_, since, until in spans(history, CARD)] == [(1, None)]
    assert told(history) == ["0 status: desired"]


def test_added_card_is_a_change_and_the_first_reading_is_not(tmp_path: Path):
    second = replace(CARD_1, index=1, bus="0000:af:00.0", serial="133")
    history = filled(tmp_path, audit(0, host()), audit(1, host(gpus=(CARD_1,))), audit(2, host(gpus=(CARD_1, second))))
    assert told(history)[1:] == ["2 card 0000:af:00.0: none → Tesla T4, serial 133, GPU-1, VBIOS 90.04"]


def test_what_else_the_stack_wants_is_no_change_of_the_host(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()), audit(1, host(readings=[driver("470.256.02", "535.1"), CUDA])))
    assert told(history) == ["0 status: desired"]
    assert {item.want for item in history.state(2)["gpu01"] if item.name == "loaded"} == {"535.1"}


def test_two_inventories_are_apart(tmp_path: Path):
    (tmp_path / "other").mkdir()
    other = str(tmp_path / "other")
    history = filled(
        tmp_path,
        audit(0, host()),
        audit(1, host(status="drift", deviations=(LINK,)), inventory=other),
        audit(2, host()),
    )
    assert history.latest("inventory") == {"gpu01": "desired"}
    assert history.latest(other) == {"gpu01": "drift"}
    assert history.latest(f"{tmp_path}/./other/") == {"gpu01": "drift"}
    assert told(history) == ["0 status: desired"]
    assert history.ages(other).keys() == {("gpu01", "status", ""), ("gpu01", "deviation", "cuda link /usr/local/cuda")}
    assert history.diff("inventory", on(0)).changes == ()
    assert [point.day for point in history.trend(other, 30)] == ["2026-11-02"]


def test_since_when(tmp_path: Path):
    drifted = host(status="drift", deviations=(LINK,))
    moved = host(status="drift", deviations=(replace(LINK, have="absent"),), findings=(XID,))
    history = filled(tmp_path, audit(0, host(), host("gpu02")), audit(1, drifted), audit(2, unread()), audit(3, moved))
    assert history.ages("inventory") == {
        ("gpu01", "status", ""): on(3),
        ("gpu02", "status", ""): on(0),
        ("gpu01", "deviation", "cuda link /usr/local/cuda"): on(1),  # it deviates in another way, without a gap
        ("gpu01", "finding", "xid-fatal"): on(3),
    }


def test_timeline_has_the_hosts_times_and_a_chosen_start(tmp_path: Path):
    history = filled(tmp_path, audit(0, host()), audit(1, unread(sentence="timed out")), audit(2, host()))
    found = history.host_history("gpu01", on(2), "inventory")
    assert [event.at for event in found.events] == [on(2) + timedelta(seconds=30)]
    assert (found.status, found.first, found.last) == ("desired", *(on(day) + timedelta(seconds=30) for day in (0, 2)))
    assert history.host_history("gpu77", None, "inventory").events == ()
    assert history.host_history("gpu77", None, "inventory").status is None


def test_an_offline_audit_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="an offline audit"):
        History(tmp_path).add(audit(0, host(), offline=True))
    assert History(tmp_path).latest("inventory") == {}


def test_pruning_keeps_the_beginning_of_facts_that_still_hold(tmp_path: Path):
    drifted = host(status="drift", deviations=(LINK,))
    gone = host("gpu02", readings=[driver("gone")])
    history = filled(
        tmp_path, audit(0, drifted, gone), audit(10, replace(drifted, readings=(driver("old"),))), audit(20, drifted),
        audit(300, drifted),
    )  # fmt: skip
    assert history.latest("inventory").keys() == {"gpu01", "gpu02"}
    history.add(audit(435, host(status="drift", deviations=(LINK,), findings=(XID,))))
    assert history.latest("inventory") == {"gpu01": "drift"}
    assert history.ages("inventory")["gpu01", "deviation", "cuda link /usr/local/cuda"] == on(0)
    assert told(history) == ["435 gpu xid-fatal: found (grave)"]
    with closing(sqlite3.connect(history.path)) as db:
        assert [id for (id,) in db.execute("SELECT DISTINCT audit FROM seen ORDER BY audit")] == [4, 5]
        assert [id for (id,) in db.execute("SELECT id FROM audit ORDER BY id")] == [1, 3, 4, 5]
        assert not db.execute("SELECT * FROM fact WHERE have IN ('old', 'gone')").fetchall()
        assert not db.execute("PRAGMA foreign_key_check").fetchall()
    assert [point.day for point in history.trend("inventory", 1000)] == ["2027-08-28", "2028-01-10"]


def test_pruning_leaves_the_state_of_the_audits_that_stay(tmp_path: Path):
    # nothing of its first audit is stored any more
    late = [unread("late") if day < 5 else host("late") for day in range(40)]
    days = [audit(day, host(readings=[driver(str(day // 7))]), host(f"gpu9{day % 3}"), late[day]) for day in range(40)]
    history = filled(tmp_path, audit(0, late[0]), *days[1:])
    before = {number: history.state(number) for number in range(30, 41)}
    history.prune(10, now=on(39.5))
    assert {number: history.state(number) for number in range(31, 41)} == {n: before[n] for n in range(31, 41)}
    assert history.state(30) == {}
    assert history.host_history("late", None, "inventory").first == on(0)


def test_a_watch_leaves_its_changes_and_one_state_a_day(tmp_path: Path):
    looks = [host(readings=[driver("b" if 30 <= number < 40 else "a")]) for number in range(80)]
    history = filled(tmp_path, *(audit(number * 10 / 1440, look) for number, look in enumerate(looks)))
    first, last, story = history.state(1), history.state(80), told(history)
    assert first == last == history.state(1)
    history.add(audit(0.7, host(), inventory="other"))
    assert history.state(79)  # for an inventory, a day ends when its next day begins
    history.add(audit(1, host(readings=[driver("a")])))
    assert (history.state(79), history.state(80)) == ({}, last)
    assert told(history) == story == ["0 status: desired", "0 driver loaded: a → b", "0 driver loaded: b → a"]
    assert (history.latest("inventory"), history.latest("other")) == ({"gpu01": "desired"}, {"gpu01": "desired"})
    with closing(sqlite3.connect(history.path)) as db:
        assert [number for (number,) in db.execute("SELECT DISTINCT audit FROM seen")] == [80, 81, 82]
        assert [number for (number,) in db.execute("SELECT id FROM audit ORDER BY id")] == [1, 31, 41, 80, 81, 82]
        assert not db.execute("PRAGMA foreign_key_check").fetchall()


def test_host_audited_alone_keeps_its_status(tmp_path: Path):
    history = filled(
        tmp_path, audit(0, host("gpu01"), host("gpu02")), audit(0.1, host("gpu02", "drift")), audit(0.2, host("gpu01")),
        audit(1, host("gpu01")),
    )  # fmt: skip
    assert history.latest("inventory") == {"gpu01": "desired", "gpu02": "drift"}
    assert history.trend("inventory", 9)[0].counts == {"desired": 1, "drift": 1}
