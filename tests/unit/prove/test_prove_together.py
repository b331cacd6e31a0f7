"""Tests of proofs that need several hosts at once: omitted with fewer hosts, unless selected by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostwright.apply.rollout.limits import STOPPED_BY_OPERATOR
from hostwright.apply.rollout.rollout import UNENDED, Interrupted, Results
from hostwright.common.errors import Stopped
from hostwright.fleet import Fleet, Listener
from hostwright.prove import proving
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.proving import Proved, ProveOptions
from tests.unit.support.proofs import host, result, ticks

HOSTS = ("gpu01", "gpu02")
IN_USE = "gpu03"  #: a host that cannot run a proof of several hosts
ALONE = ("base.processors", "base.memory", "base.disk")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    """The proofs run on each host, in order; all pass."""
    made: list[tuple[str, tuple[str, ...]]] = []

    class Prove:
        def __init__(self, _run: object, target: Any, proofs: Any, later: Any = ()):
            self.about = target.name, tuple(proof.key for proof in proofs)
            self.peers = [proof.program.arguments.get("peers") for proof in proofs]
            self.later = [proof.key for proof in later if target.name == IN_USE]

        def prove(self) -> HostProof:
            made.append(self.about)
            name, keys = self.about
            held = (result(proof=key, outcome="not run", sentence="it is in use") for key in self.later)
            assert IN_USE not in str(self.peers)
            return host(name, *(result(ticks(2.5), proof=key) for key in keys), *held)

        def close(self) -> None:
            """Nothing to close."""

    monkeypatch.setattr(proving, "HostProve", Prove)
    return made


def prove(fleet: Fleet, hosts: str, *names: str) -> Proved:
    options = ProveOptions("full", names)
    return fleet.prove(fleet.targets(hosts, ["base"]), options, view=Listener(lambda _: None))


def test_one_host_alone_is_proved_by_what_it_can_do_alone(fleet: Fleet, ran: list[tuple[str, tuple[str, ...]]]) -> None:
    assert prove(fleet, "gpu01").status == 0
    assert prove(fleet, "gpu01", "base").status == 0
    assert ran == [("gpu01", ALONE)] * 2


def test_what_is_asked_for_by_its_name_is_told_as_not_run(fleet: Fleet, ran: list[tuple[str, tuple[str, ...]]]) -> None:
    proved = prove(fleet, "gpu01", "base.network")
    (told,) = proved.fleet.hosts[0].results
    assert (proved.status, told.outcome) == (1, "not run")
    assert told.sentence == "the proof needs 2 hosts at once, but 1 can run it; select more with --hosts"


def test_two_hosts_run_it_after_what_each_does_alone(fleet: Fleet, ran: list[tuple[str, tuple[str, ...]]]) -> None:
    assert prove(fleet, "all", "base").status == 0
    assert sorted(ran[:2]) == [("gpu01", ALONE), ("gpu02", ALONE)]
    assert sorted(ran[2:]) == [("gpu01", ("base.network",)), ("gpu02", ("base.network",))]


def test_a_host_that_cannot_run_it_keeps_nobody_waiting(fleet: Fleet, ran: list[tuple[str, tuple[str, ...]]]) -> None:
    (fleet.path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {f"gpu0{n}": {} for n in (1, 2, 3)}}}))
    proved = prove(Fleet.load(fleet.path), "all", "base.network")
    outcomes = {one.host: [result.outcome for result in one.results] for one in proved.fleet.hosts}
    assert outcomes == {"gpu01": ["passed"], "gpu02": ["passed"], IN_USE: ["not run"]}
    assert sorted(ran[3:]) == [("gpu01", ("base.network",)), ("gpu02", ("base.network",))]


def test_ctrl_c_keeps_what_was_measured_and_begins_no_proof_of_several_hosts(
    fleet: Fleet, ran: list[tuple[str, tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, ...]] = []

    def cut(names: tuple[str, ...], *_: object, **__: object) -> Results[HostProof]:
        begun.append(names)
        measured = (host("gpu01", result(ticks(2.5), proof="base.memory")),)
        raise Interrupted(Results(measured, (Stopped("gpu02", UNENDED),), (), STOPPED_BY_OPERATOR, names))

    monkeypatch.setattr(proving, "on_each", cut)
    with pytest.raises(Interrupted) as stopped:
        prove(fleet, "all", "base")
    ended = stopped.value.ended
    assert isinstance(ended, Proved)
    assert (begun, ended.status) == ([HOSTS], 130)
    told = {one.host: (one.sentence, [each.proof for each in one.results]) for one in ended.fleet.hosts}
    assert told == {"gpu01": ("", ["base.memory"]), "gpu02": (UNENDED, [])}
