"""What a host writes into its records and locks: read as one of ours or as none, shown on one line, never an error."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.apply.locking.hostlocks import HostLocks
from hostwright.plan.host import drained, hostfacts, jobs, locks, newrelease, release
from hostwright.plan.host.release import RunStamp
from hostwright.plan.model import Answer, Facts
from hostwright.plan.targets import TargetHost
from tests.unit.fuzz.lies import answers, clean, pieces
from tests.unit.support.standard import targets

NOW = datetime(2026, 11, 22, 21, tzinfo=UTC)
values = st.none() | st.booleans() | st.integers() | st.floats() | pieces
records = st.recursive(
    values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(pieces, inner, max_size=3), max_leaves=8
)
OURS = locks.holder("run-1", "gpu01", NOW)


def record(**fields: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    """Text of JSON in which some of these fields are as they should be, and some as they should not."""
    shape = st.fixed_dictionaries({}, optional={name: good | records for name, good in fields.items()})
    return st.one_of(shape, records, st.just({})).map(json.dumps) | clean


times = st.sampled_from(
    ["2026-11-22T21:00:00+00:00", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "99999-01-01", 1e18, -1e18]
)
RELEASES = record(
    schema=st.sampled_from([1, 2, 3, True, 2.0, "2"]),
    stack=pieces, digest=pieces, at=times, versions=st.dictionaries(pieces, pieces, max_size=3), run=pieces,
    roles=st.dictionaries(st.sampled_from(["base", "cuda", "..", "x" * 200]), records, max_size=3),
)  # fmt: skip
LOCKS = record(
    schema=st.just(1), owner=pieces, reason=pieces, host=pieces, since=times, until=times, run=pieces,
    machine=st.just(OURS.machine),
    pid=st.sampled_from([OURS.pid, -1, 0, 2**31, 2**70, 1.5]), started=pieces, lapses_s=st.sampled_from([15, 0,
    -1, 1e308]),
)  # fmt: skip
JOBS = record(
    schema=st.just(1), role=pieces, nonce=pieces, run=pieces, operator=pieces, steps=st.lists(pieces, max_size=3)
)


@pytest.fixture(scope="module")
def target() -> TargetHost:
    return next(iter(targets()))


def text_of(answer: str) -> Facts:
    clean_text = answer.encode("utf-8", "replace").decode()
    probes = (release.RELEASE, release.FORMERS, locks.LOCK, locks.RUN_LOCK, drained.DRAINED, jobs.RUNNING)
    return Facts({probe: Answer(0, clean_text) for probe in probes})


@given(RELEASES, RELEASES)
def test_a_release_record_is_ours_or_none(target: TargetHost, first: str, second: str) -> None:
    facts = text_of(f"{first}\n{second}")
    alone = text_of(first)
    release.refusal(alone)
    for found in (release.read(alone), *release.formers(facts)):
        assert release.at_of(found).isprintable()
        release.about(found, target.stack)
        name = newrelease.former_name(found, target.stack)
        assert "/" not in name
        newrelease.reduced(found, ["base"])
        renewed = newrelease.renewed(target.desired, found, RunStamp("run-1"))
        newrelease.write_script(renewed or found, former=name)
        sqlite3.connect(":memory:").execute("SELECT ?", (json.dumps(found, ensure_ascii=False, allow_nan=False),))


@given(LOCKS, st.sampled_from(["there\n", "", "heard 3\n", "heard -99999999999999999999\n", "heard nan\n"]))
def test_a_lock_is_one_that_can_be_shown_and_judged(text: str, before: str) -> None:
    facts = text_of(before + text)
    lock, run = locks.operator_lock(facts), locks.run_lock(facts)
    shown = [locks.refusal(facts, NOW), locks.forbids(lock, "me", NOW), locks.held_by(run), str(lock), str(run)]
    assert all(line.isprintable() and len(line) < 2000 for line in shown)
    locks.living(facts, OURS)
    locks.lapsing(run, float("nan"), OURS)
    locks.lock_script(replace(lock or locks.UNREADABLE), facts)
    json.dumps(HostLocks("gpu01", lock, lock, run).to_json(), allow_nan=False)


@given(LOCKS | RELEASES)
def test_who_drained_a_host_is_shown_on_one_line(text: str) -> None:
    mark = drained.drained(text_of(text))
    assert mark is not None
    assert str(mark).isprintable()


@given(st.lists(st.tuples(pieces | st.sampled_from(["run1-cuda-aa", "a"]), JOBS), max_size=4))
def test_running_jobs_are_named_as_jobs_are(rows: list[tuple[str, str]]) -> None:
    for job in jobs.running(text_of("\n".join(f"{name} {text}" for name, text in rows))):
        assert jobs.is_job_id(job.id)
        assert job.nonce == "" or job.nonce.isalnum()


@given(st.lists(answers, min_size=6, max_size=6))
def test_a_host_is_what_can_be_read_of_it(some: list[Answer]) -> None:
    facts = Facts(dict(zip(hostfacts.HOST_PROBES, some, strict=True)))
    host = hostfacts.read_host(facts)
    assert host.memory_bytes is None or 0 <= host.memory_bytes < 2**70
    assert len(host.gpus) <= 64 * 1024
