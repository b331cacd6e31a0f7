"""Tests of the figures of proofs in the history: stored, used as baselines, and removed in time, beside the audits'."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostwright.audit.history import History
from hostwright.audit.history.schema import MIGRATIONS
from hostwright.prove.judging import Kept
from hostwright.prove.proofstore import ProofHistory
from tests.unit.support.audits import fleet as audited
from tests.unit.support.proofs import fleet, host, result, ticks

AT = "2026-11-23T08:00:00+00:00"
PLACE = "/site/inventory"


@pytest.fixture
def history(tmp_path: Path) -> ProofHistory:
    return ProofHistory(tmp_path)


def test_what_was_measured_comes_back(history: ProofHistory) -> None:
    history.add(fleet(host("gpu01", result(ticks(2.5))), host("gpu02", result(ticks(3.5)))))
    history.add(fleet(host("gpu01", result(ticks(2.4))), at="2026-11-24T08:00:00+00:00"))
    past = history.past(PLACE, {"gpu01"}, 0)
    assert [(one.host, one.name, one.device, one.value) for one in past] == [
        ("gpu01", "ticks", "cpu (EPYC)", 2.5),
        ("gpu01", "ticks", "cpu (EPYC)", 2.4),
    ]
    assert history.past(PLACE, {"gpu01"}, past[0].at + 1) == past[1:]
    assert history.past("/another", {"gpu01"}, 0) == ()


def test_only_what_passed_becomes_a_baseline_and_only_when_asked(history: ProofHistory) -> None:
    good, bad = result(ticks(2.5)), result(ticks(1.0), proof="clock.bad", outcome="failed")
    history.add(fleet(host("gpu01", good, bad)))
    assert history.baseline(PLACE, "gpu01") == {}
    history.add(fleet(host("gpu01", good, bad)), baseline=True)
    assert history.baseline(PLACE, "gpu01") == {("clock.ticks", "ticks", "cpu (EPYC)"): Kept(AT, 2.5)}
    assert history.baseline(PLACE, "gpu02") == {}


def test_a_later_baseline_takes_the_place_of_the_earlier_one_and_of_the_cards_that_are_gone(
    history: ProofHistory,
) -> None:
    history.add(fleet(host("gpu01", result(ticks(2.5, "GPU-1 (A100)")))), baseline=True)
    history.add(fleet(host("gpu01", result(ticks(2.7, "GPU-2 (A100)")))), baseline=True)
    history.add(fleet(host("gpu01", result(ticks(9.0, "GPU-2 (A100)")))))
    assert history.baseline(PLACE, "gpu01") == {("clock.ticks", "ticks", "GPU-2 (A100)"): Kept(AT, 2.7)}


def test_what_is_older_than_audits_are_kept_is_forgotten_but_baselines_stay(history: ProofHistory) -> None:
    history.add(fleet(host("gpu01", result(ticks(2.5)))), baseline=True)
    later = datetime.fromisoformat(AT) + timedelta(days=401)
    history.add(fleet(host("gpu01", result(ticks(2.6))), at=later.isoformat()))
    assert [one.value for one in history.past(PLACE, {"gpu01"}, 0)] == [2.6]
    assert len(history.baseline(PLACE, "gpu01")) == 1


def test_proofs_and_audits_share_a_file_and_a_history_of_before_is_taken_over(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "history.sqlite") as db:
        for statement in MIGRATIONS[0]:
            db.execute(statement)
        db.execute("PRAGMA user_version=1")
    db.close()
    History(tmp_path).add(audited())
    ProofHistory(tmp_path).add(fleet(host("gpu01", result(ticks(2.5))), inventory=audited().inventory))
    History(tmp_path).prune(now=datetime(2030, 1, 1, tzinfo=UTC))
    assert len(ProofHistory(tmp_path).past(audited().inventory, {"gpu01"}, 0)) == 1
