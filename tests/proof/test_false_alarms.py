"""Twenty-four equal hosts with nothing planted, round after round: how often one of them is called an outlier.

The hosts share the machine's processors, which hosts of a fleet do not: a round measures one host after the other. What
is counted is every figure that is compared with those of twins. HOSTWRIGHT_PROOF_ROUNDS says how many rounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lab import fleet
from tests.lab.telling import tell
from tests.proof.bench import WITHOUT_CARD, Bench, Document, clones, failed, results, unexpected

TWINS = tuple(f"twin{number:02}" for number in range(1, 25))
ROUNDS = int(os.environ.get("HOSTWRIGHT_PROOF_ROUNDS", "3"))
WORDS = (
    *("--hosts", ",".join(TWINS), "--proofs", "base.processors,base.memory"),
    *("--roles", "base", "--at-once", "1"),
)
#: figures of a host: copy and triad of one processor and, unless this is a virtual machine, of all
COMPARED = 2 if "hypervisor" in Path("/proc/cpuinfo").read_text("utf-8").split() else 4
#: of all figures: what docs/prove.md tells of a fleet whose figures vary by 3 %
MOST_FALSE = 1 / 1000


@pytest.fixture(scope="module")
def twins(hosts: Bench) -> Iterator[Bench]:
    """The hosts."""
    assert not WITHOUT_CARD.hardware.cards
    clones(hosts, TWINS)
    yield hosts
    fleet.remove(hosts.lab, TWINS)


def judged(told: Document) -> int:
    """How many figures were compared with those of the other hosts."""
    return sum(bool(row["better"]) and row["value"] is not None for one in results(told) for row in one["measurements"])


def again(told: Document) -> list[str]:
    """What was measured a second time, since the first figure was worse than those of twins."""
    return [note["sentence"] for one in results(told) for note in one["findings"] if note["severity"] == "note"]


@dataclass
class Score:
    """What all rounds came to."""

    rounds: int = 0
    figures: int = 0
    alarms: list[str] = field(default_factory=list)
    second: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def score(pytestconfig: pytest.Config) -> Iterator[Score]:
    """The score, told at the end, however far the rounds went."""
    kept = Score()
    yield kept
    words = f"{kept.figures} figures judged: {len(kept.alarms)} false alarms"
    tell(pytestconfig, f"{len(TWINS)} hosts, {kept.rounds} rounds, {words}")
    for line in (*kept.alarms, *kept.second):
        tell(pytestconfig, line)


@pytest.mark.parametrize("number", range(1, ROUNDS + 1))
def test_equal_hosts_are_measured(twins: Bench, score: Score, number: int) -> None:
    done = twins.invoke("prove", *WORDS, "--json")
    assert done.returncode in {0, 3}, done.stderr
    told = json.loads(done.stdout)
    score.rounds += 1
    score.figures += judged(told)
    score.alarms += [f"round {number}: {line}" for line in unexpected(told)]
    score.second += [f"round {number}: {line}" for line in again(told)]
    assert judged(told) == len(TWINS) * COMPARED
    assert set(failed(told)) == set(TWINS)


def test_equal_hosts_are_no_outliers(score: Score) -> None:
    assert score.rounds == ROUNDS
    assert len(score.alarms) <= MOST_FALSE * score.figures, score.alarms
