"""Tests that a figure worse than those of peers or the baseline is measured again before it becomes a finding."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from hostwright.common.errors import HostError
from hostwright.fleet import Fleet, Listener
from hostwright.prove import proving
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.model import ProofResult
from hostwright.prove.proving import Proved, ProveOptions
from tests.unit.support.proofs import host, result, ticks

HOSTS = ("gpu01", "gpu02", "gpu03", "gpu04")


class Hosts:
    """The results of each host, the first time and later; the proofs run on it, in order, and the number of parallel
    hosts.
    """

    def __init__(self) -> None:
        self.shown: dict[str, list[ProofResult | HostError]] = defaultdict(lambda: [memory(100.0)])
        self.proved: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        self.order: list[str] = []

    def prove(self, name: str, keys: tuple[str, ...]) -> HostProof:
        """As ``HostProve.prove``."""
        times = len(self.proved[name])
        self.order.append(name)
        self.proved[name].append(keys)
        shown = self.shown[name][min(times, len(self.shown[name]) - 1)]
        if isinstance(shown, HostError):
            raise shown
        return host(name, shown)


def memory(value: float, **more: Any) -> ProofResult:
    return result(ticks(value), proof="base.memory", **more)


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    made = Hosts()

    class Prove:
        def __init__(self, _run: object, target: Any, proofs: Any, _later: Any = ()):
            self.about = target.name, tuple(proof.key for proof in proofs)

        def prove(self) -> HostProof:
            return made.prove(*self.about)

        def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(proving, "HostProve", Prove)
    return made


def prove(fleet: Fleet, **options: Any) -> Proved:
    chosen = ProveOptions("quick", ("base.memory",), **options)
    return fleet.prove(fleet.targets("all", ["base"]), chosen, view=Listener(lambda _: None))


def of(proved: Proved, name: str) -> ProofResult:
    (found,) = next(one for one in proved.fleet.hosts if one.host == name).results
    return found


def test_what_was_slow_for_a_moment_is_no_finding_but_a_note(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(40.0), memory(99.0)]
    proved = prove(fleet)
    assert proved.status == 0
    slow = of(proved, "gpu03")
    assert (slow.outcome, slow.measurements[0].value) == ("passed", 99.0)
    (note,) = slow.findings
    assert (note.severity, note.proof) == ("note", "base.memory")
    assert note.sentence == "ticks on cpu (EPYC) is not reproducible: 40 M/s at first, 99 M/s when measured again"
    assert {name: len(times) for name, times in hosts.proved.items()} == dict.fromkeys(HOSTS, 2), "peers beside it"


def test_what_is_slow_again_is_an_outlier_by_its_better_figure(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(50.0), memory(45.0), memory(48.0)]
    proved = prove(fleet)
    assert proved.status == 3
    slow = of(proved, "gpu03")
    assert [finding.severity for finding in slow.findings] == ["outlier"]
    assert slow.measurements[0].value == 50.0
    assert hosts.proved["gpu03"] == [("base.memory",)] * (1 + proving.MOST_AGAIN)


def test_what_was_slow_twice_and_not_the_third_time_is_no_finding(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(75.0), memory(76.0), memory(99.0)]
    proved = prove(fleet)
    assert proved.status == 0
    assert of(proved, "gpu03").measurements[0].value == 99.0
    assert len(hosts.proved["gpu03"]) == 3


def test_what_slows_all_when_they_are_measured_again_is_no_finding_but_a_note(fleet: Fleet, hosts: Hosts) -> None:
    """As on one machine that is busy for some minutes: the first three hosts were measured before."""
    hosts.shown = defaultdict(lambda: [memory(66.0), memory(45.0)], gpu04=[memory(44.0), memory(44.5)])
    proved = prove(fleet)
    assert proved.status == 0
    slow = of(proved, "gpu04")
    assert (slow.outcome, slow.measurements[0].value) == ("passed", 44.5)
    (note,) = slow.findings
    assert (note.severity, note.measured, note.expected) == ("note", "44.5 M/s", "45 M/s")
    assert note.sentence == (
        "ticks on cpu (EPYC) is 33% worse than the median of 4 hosts. Measured again: 44.5 M/s; median of 3 of these "
        "hosts: 45 M/s"
    )
    assert [of(proved, name).measurements[0].value for name in HOSTS[:3]] == [66.0] * 3, "theirs stand"


def test_a_slow_host_is_found_also_while_all_are_slow(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown = defaultdict(lambda: [memory(66.0), memory(45.0)], gpu04=[memory(44.0), memory(30.0)])
    proved = prove(fleet)
    assert proved.status == 3
    assert [finding.severity for finding in of(proved, "gpu04").findings] == ["outlier"]


def test_one_peer_alone_says_nothing_of_a_host(fleet: Fleet, hosts: Hosts) -> None:
    gone = HostError("gpu02", "the connection was lost")
    hosts.shown = defaultdict(lambda: [memory(66.0), memory(45.0)], gpu04=[memory(44.0), memory(44.0)])
    hosts.shown |= {"gpu01": [memory(66.0), gone], "gpu02": [memory(66.0), gone]}
    assert prove(fleet).status == 3


def test_a_peer_that_fails_when_it_is_measured_again_has_failed(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(40.0), memory(99.0)]
    hosts.shown["gpu01"] = [memory(100.0), memory(100.0, outcome="failed", sentence="a wrong value")]
    proved = prove(fleet)
    assert (proved.status, of(proved, "gpu01").sentence, of(proved, "gpu03").outcome) == (3, "a wrong value", "passed")


def test_one_after_the_other_peers_come_before_and_after_it(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(40.0)]
    prove(fleet, at_once=1)
    assert hosts.order[4:8] == ["gpu01", "gpu03", "gpu02", "gpu04"]


def test_a_loss_against_the_baseline_is_measured_again_too(fleet: Fleet, hosts: Hosts) -> None:
    prove(fleet, baseline=True)
    hosts.proved.clear()
    hosts.shown = defaultdict(lambda: [memory(80.0), memory(98.0)])
    assert prove(fleet).status == 0
    assert {len(times) for times in hosts.proved.values()} == {2}


def test_what_fails_by_itself_is_not_measured_again(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(40.0, outcome="failed", sentence="a wrong value")]
    proved = prove(fleet)
    assert (proved.status, of(proved, "gpu03").sentence) == (3, "a wrong value")
    assert len(hosts.proved["gpu03"]) == 1


def test_a_second_time_that_fails_by_itself_is_what_counts(fleet: Fleet, hosts: Hosts) -> None:
    hosts.shown["gpu03"] = [memory(40.0), memory(99.0, outcome="failed", sentence="a wrong value")]
    proved = prove(fleet)
    assert (proved.status, of(proved, "gpu03").sentence) == (3, "a wrong value")


@pytest.mark.parametrize(
    "second", [memory(99.0, outcome="not run", sentence="it is in use"), HostError("gpu03", "the connection was lost")]
)
def test_without_a_second_figure_the_first_one_counts(
    fleet: Fleet, hosts: Hosts, second: ProofResult | HostError
) -> None:
    hosts.shown["gpu03"] = [memory(40.0), second]
    proved = prove(fleet)
    assert proved.status == 3
    assert [finding.severity for finding in of(proved, "gpu03").findings] == ["outlier"]
