"""Twenty-four hosts with more than twenty-five kinds of drift: all found, no others reported, each fix works.

This is one round, with plants of every layer; ``python -m tests.lab.audit`` runs all plants.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab import fleet
from lab.config import Lab
from lab.records import Snapshot
from tests.lab.audit.bench import Bench, Planted, Score, dealt, score
from tests.lab.audit.plants import PLANTS
from tests.lab.conftest import FrontDoor
from tests.lab.telling import tell

pytestmark = pytest.mark.long
HOSTS = tuple(f"aud{number:02}" for number in range(1, 25))
CLEAN = 3
KINDS = 25  #: minimum


@pytest.fixture(scope="module")
def bench(provisioned: FrontDoor, lab: Lab, as_provisioned: Snapshot) -> Iterator[Bench]:
    """Clones of the shared second host."""
    made = Bench(lab, as_provisioned, provisioned, HOSTS)
    made.bring()
    yield made
    fleet.remove(lab, HOSTS)


@pytest.fixture(scope="module")
def planted(bench: Bench) -> Planted:
    """The quick plants on the hosts."""
    found = dealt([one for one in PLANTS if one.quick], HOSTS, CLEAN)
    bench.plant(found)
    return found


@pytest.fixture(scope="module")
def seen(bench: Bench, planted: Planted) -> Score:
    """The score of the audit."""
    return score(planted, bench.audit(status=3))


def test_there_are_enough_kinds_in_every_layer(planted: Planted):
    kinds = {one.name for plants in planted.values() for one in plants}
    layers = {one.layer for plants in planted.values() for one in plants}
    assert len(kinds) >= KINDS
    assert layers >= {"base", "driver", "cuda", "cudnn", "environment", "tensorflow", "container", "gpu"}


def test_all_that_was_planted_is_found(seen: Score, pytestconfig: pytest.Config):
    tell(pytestconfig, f"{len(HOSTS)} hosts, {CLEAN} of them clean: {seen}")
    assert seen.missed == []


def test_nothing_is_invented(seen: Score):
    assert seen.invented == []


def test_what_the_doctor_says_cures_them(bench: Bench, planted: Planted, seen: Score):
    """By hand where the doctor says so, by ``invoke provision`` otherwise; then every host is as desired."""
    bench.cure_by_hand(planted)
    done = bench.invoke("provision", "--hosts", bench.pattern)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    after = score(dict.fromkeys(HOSTS, ()), bench.audit(status=0))
    assert (after.missed, after.invented) == ([], [])


def test_the_history_knows_what_went_and_came_back(bench: Bench, planted: Planted):
    told = bench.invoke.json("audit.history", "--hosts", HOSTS[0], status=0)["hosts"][0]
    statuses = [event["after"] for event in told["events"] if event["kind"] == "status"]
    assert statuses[-1] == "desired"
    assert len(statuses) >= 2
