"""Tests with equal hosts on one machine that is slow for some minutes now and then, as virtual machines and lab hosts
are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping

import pytest

from hostwright.apply.rollout.rollout import Results
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.peers.again import doubts_of, due_again, with_better
from hostwright.prove.peers.comparing import against_peers
from hostwright.prove.proving import MOST_AGAIN
from tests.unit.support.proofs import host, proof, result, ticks

PROOF = proof("")
NAMES = tuple(f"host{number:02}" for number in range(24))
FAST, SLOW = 66.0, 44.0  #: GB/s, copied in memory: measured on lab hosts
SLOW_PART = 0.1  #: of the time
NOISE = 0.03
TAKES_S = 8.0  #: a host's proof
RUNS = 60


class World:
    """A machine, and the figures of hosts on it, in turn. ``slower``: host → the part of the speed that it reaches."""

    def __init__(self, dice: random.Random, minutes: float, slower: Mapping[str, float]):
        self._dice, self._minutes, self._slower = dice, minutes, slower
        self._level = SLOW if dice.random() < SLOW_PART else FAST
        self._left_s = self._lasts_s()

    def measure(self, names: Collection[str]) -> tuple[HostProof, ...]:
        return tuple(host(name, result(ticks(self._next(name)), proof=PROOF.key)) for name in names)

    def _next(self, name: str) -> float:
        self._left_s -= TAKES_S
        while self._left_s < 0:
            self._level = SLOW if self._level == FAST else FAST
            self._left_s += self._lasts_s()
        return self._level * self._slower.get(name, 1.0) * self._dice.gauss(1.0, NOISE)

    def _lasts_s(self) -> float:
        slow_s = self._minutes * 60
        return self._dice.expovariate(1 / (slow_s if self._level == SLOW else slow_s * (1 - SLOW_PART) / SLOW_PART))


def prove(world: World) -> Collection[str]:
    """The outliers, determined as in ``proving.prove``."""
    due = dict.fromkeys(NAMES, (PROOF,))
    results = Results(world.measure(NAMES), ())
    hosts, again = against_peers(results.values), []
    for _ in range(MOST_AGAIN):
        if not (doubts := doubts_of(results, hosts, due)):
            break
        ran = Results(world.measure(due_again(hosts, doubts, due, lambda _: None)), ())
        again.append(ran.values)
        results = with_better(results, ran, doubts)
        hosts = against_peers(results.values, again)
    return {one.host for one in hosts if one.status == "failed"}


@pytest.fixture
def worlds() -> Callable[..., list[World]]:
    def made(minutes: float, slower: Mapping[str, float] = {}) -> list[World]:
        return [World(random.Random(seed), minutes, slower) for seed in range(RUNS)]  # noqa: S311 - noise, not keys

    return made


@pytest.mark.parametrize("minutes", [0.25, 0.5, 1, 2, 4, 8])
def test_equal_hosts_are_no_outliers_because_their_machine_is_slow_for_minutes(
    worlds: Callable[..., list[World]], minutes: float
) -> None:
    """Without peers measured again, up to three of a thousand figures are outliers."""
    alarms = [name for world in worlds(minutes) for name in prove(world)]
    assert len(alarms) <= RUNS * len(NAMES) / 1000


@pytest.mark.parametrize("minutes", [0.5, 8])
def test_a_slow_host_is_found_all_the_same(worlds: Callable[..., list[World]], minutes: float) -> None:
    """A host that is slower by 30 %; nearly all missed ones were measured while all hosts were slow."""
    found = ["host07" in prove(world) for world in worlds(minutes, {"host07": 0.7})]
    assert sum(found) >= 0.85 * RUNS
