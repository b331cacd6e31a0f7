"""Twenty-four equal hosts with nothing planted, round after round: how often one of them is called an outlier.

The hosts share the machine's processors, which hosts of a fleet do not: a round measures one host after the other. What
is counted is every figure that is compared with those of twins. HOSTWRIGHT_PROOF_ROUNDS says how many rounds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from lab import fleet
from tests.lab.telling import tell
from tests.proof.bench import WITHOUT_CARD, Bench, Document, clones, failed, results, unexpected

TWINS = tuple(f"twin{number:02}" for number in range(1, 25))
ROUNDS = int(os.environ.get("HOSTWRIGHT_PROOF_ROUNDS", "3"))
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


def test_equal_hosts_are_no_outliers(twins: Bench, pytestconfig: pytest.Config) -> None:
    figures, alarms, second = 0, [], []
    for number in range(1, ROUNDS + 1):
        words = (
            "--hosts",
            ",".join(TWINS),
            "--proofs",
            "base.processors,base.memory",
            "--roles",
            "base",
            "--at-once",
            "1",
        )
        done = twins.invoke("prove", *words, "--json")
        assert done.returncode in {0, 3}, done.stderr
        told = json.loads(done.stdout)
        figures += judged(told)
        alarms += [f"round {number}: {line}" for line in unexpected(told)]
        second += [f"round {number}: {line}" for line in again(told)]
        assert set(failed(told)) == set(TWINS)
    tell(pytestconfig, f"{len(TWINS)} hosts, {ROUNDS} rounds, {figures} figures judged: {len(alarms)} false alarms")
    for line in second:
        tell(pytestconfig, line)
    assert figures == ROUNDS * len(TWINS) * 2
    assert len(alarms) <= MOST_FALSE * figures, alarms
