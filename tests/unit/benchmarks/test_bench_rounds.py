"""The order of the rounds, and what becomes of a contender that fails."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.figures.sample import Sample
from benchmarks.measuring import rounds
from benchmarks.measuring.command import Command, Done
from benchmarks.measuring.rounds import alternate


def command(contender: str, **more: object) -> Command:
    return Command(contender, 1, (contender,), **more)  # type: ignore[arg-type]


def done(one: Command, number: int, status: int = 0) -> Done:
    return Done(Sample(one.contender, one.size, one.variant, number, 1.0, 0.1), status, "out", "err")


def silent(_: str) -> None:
    """Nobody listens."""


def test_all_take_turns() -> None:
    found = alternate([command("A"), command("B"), command("C")], 2, 60, done, silent)
    assert [(one.contender, one.round) for one in found.samples] == [
        ("A", 0), ("B", 0), ("C", 0), ("A", 1), ("B", 1), ("C", 1),
    ]  # fmt: skip
    assert (found.failed, found.cut) == ({}, "")


def test_one_that_fails_is_not_run_again_and_the_others_are() -> None:
    def measure(one: Command, number: int) -> Done:
        return done(one, number, status=4 if one.contender == "B" else 0)

    found = alternate([command("A"), command("B")], 3, 60, measure, silent)
    assert [one.contender for one in found.samples] == ["A", "A", "A"]
    assert found.failed == {"B, 1": "it ended with 4: out … err"}


def test_one_whose_work_is_not_done_does_not_count_however_it_ends() -> None:
    found = alternate([command("A", check=lambda _: "2 hosts are missing")], 3, 60, done, silent)
    assert (found.samples, found.failed) == ([], {"A, 1": "2 hosts are missing"})


def test_a_command_may_want_fewer_rounds() -> None:
    found = alternate([command("A"), command("B", rounds=1)], 3, 60, done, silent)
    assert [one.contender for one in found.samples] == ["A", "B", "A", "A"]


def test_further_values_are_kept_with_the_sample() -> None:
    found = alternate([command("A", counted=lambda one: {"copies": 2.0})], 1, 60, done, silent)
    assert found.samples[0].extra == {"copies": 2.0}


def test_after_its_bound_no_further_round_is_begun_but_the_first_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 100))
    monkeypatch.setattr(rounds.time, "monotonic", lambda: next(clock))
    found = alternate([command("A"), command("B"), command("C")], 5, 60, done, silent)
    assert [one.contender for one in found.samples] == ["A", "B", "C"]
    assert found.cut == "after 1 of 5 rounds, at its bound of 1 minutes"


def test_series_have_names() -> None:
    assert rounds.key(replace(command("A"), size=24, variant="80 ms")) == "A, 24, 80 ms"
