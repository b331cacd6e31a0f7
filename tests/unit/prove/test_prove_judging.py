"""Tests of judging measurements: of one host alone, against its baseline, and against its peers."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hostwright.audit.hardware.gpu import Gpu
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.host import ended_result
from hostwright.prove.job import HOTTEST, ProgramEnd
from hostwright.prove.judging import Kept, against_baseline, judged
from hostwright.prove.model import Expected, Measurement, Measurements, Proof, ProofFinding
from hostwright.prove.peers.comparing import WITNESSES, against_peers, witnesses
from hostwright.prove.proving import exit_status
from hostwright.prove.reading import Printed, read
from tests.unit.support.proofs import host, proof, result, ticks

EXPECTED = Expected("gpu01", processor="EPYC")
GOOD = '{"measure": "ticks", "value": 5, "unit": "M/s", "device": "cpu", "better": "more"}\n{"end": true}'
NO_CARD = '{"measure": "ticks", "value": null, "unit": "M/s", "device": "no GPU"}\n{"end": true}'


def slow(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    number = measured.number("ticks")
    if number is not None and number < 3:
        return (ProofFinding(f"{expected.host} is slow", "cpu", measured=str(number), expected="3"),)
    return ()


def of(text: str, judge: Proof | None = None, **ended: object) -> tuple[str, str]:
    end = replace(ProgramEnd(0, 1.0, text), **ended)  # type: ignore[arg-type]
    came = ended_result(judge or proof("", judge=slow, time_limit_s=60), end, EXPECTED)
    return came.outcome, came.sentence


def test_a_proof_passes_that_came_to_its_end_with_good_figures() -> None:
    assert of(GOOD) == ("passed", "")
    assert of(GOOD.replace("5", "2")) == ("failed", "gpu01 is slow")


def test_no_gpu_is_never_a_pass() -> None:
    assert of(NO_CARD) == ("no GPU", "")
    assert of(f"{NO_CARD.splitlines()[0]}\n{GOOD}") == ("passed", "")


@pytest.mark.parametrize("hottest", [(), (Measurement(HOTTEST, 34.0, "°C", "GPU-1"),)])
def test_a_program_that_can_use_no_card_fails_where_the_driver_names_one(hottest: tuple[Measurement, ...]) -> None:
    end, of_cards = ProgramEnd(0, 1.0, NO_CARD, hottest=hottest), proof("", needs_gpu=True)
    came = ended_result(of_cards, end, replace(EXPECTED, cards=(Gpu(0, "0000:01:00.0"),)))
    assert (came.outcome, came.sentence) == (
        "failed",
        "the program cannot use any of the cards that the driver lists (1)",
    )
    assert ended_result(of_cards, end, EXPECTED).outcome == "no GPU"


@pytest.mark.parametrize(
    ("text", "more", "came"),
    [
        (GOOD, {"status": 1}, ("failed", "the program ended with status 1")),
        (GOOD, {"status": 1, "stderr": ("a", "CUDA error")}, ("failed", "the program ended with status 1: CUDA error")),
        (GOOD, {"status": None}, ("not run", "the proof was interrupted")),
        (GOOD, {"status": 124, "took_s": 60.1}, ("failed", "the proof exceeded its limit of 60 s")),
        (GOOD, {"status": 143, "stopped": "GPU-1 is at 91 °C"}, ("failed", "the proof was stopped: GPU-1 is at 91 °C")),
        (GOOD, {"status": None, "unbuilt": True}, ("not run", "the program could not be built")),
        (GOOD.splitlines()[0], {}, ("failed", "the output is incomplete")),
        ("", {}, ("failed", "the output is incomplete")),
        ('{"error": "GPU-1 computes 3, not 4"}\n{"end": true}', {}, ("failed", "GPU-1 computes 3, not 4")),
        ('{"error": "wrong"}', {"status": 1, "stderr": ("x",)}, ("failed", "wrong")),
        ('{"not run": "no compiler"}\n{"end": true}', {}, ("not run", "no compiler")),
    ],
)
def test_an_end_that_is_no_good_one_says_why(text: str, more: dict[str, object], came: tuple[str, str]) -> None:
    assert of(text, **more) == came


def test_a_judge_that_stumbles_over_a_figure_fails_the_proof_and_nothing_else() -> None:
    def judge(measured: Measurements, _: Expected) -> tuple[ProofFinding, ...]:
        raise ZeroDivisionError(f"{len(measured)} figures")

    outcome, sentence = of(GOOD, proof("", judge=judge))
    assert (outcome, sentence.startswith("the figures cannot be judged: ZeroDivisionError")) == ("failed", True)


def test_a_bare_cpu_gets_the_hosts_model_of_processor() -> None:
    came = judged(proof(""), read(GOOD), EXPECTED, 1.0)
    assert [one.device for one in came.measurements] == ["cpu (EPYC)"]
    assert judged(proof(""), Printed(Measurements(()), ended=True), EXPECTED, 1.0).outcome == "passed"


@pytest.mark.parametrize(
    ("value", "better", "lost"),
    [
        (90.1, "more", False),
        (89.9, "more", True),
        (150.0, "more", False),
        (109.9, "less", False),
        (110.1, "less", True),
    ],
)
def test_a_loss_of_more_than_a_part_of_the_baseline_is_a_finding(value: float, better: str, lost: bool) -> None:
    measurement = Measurement("ticks", value, "M/s", "cpu (EPYC)", better)  # type: ignore[arg-type]
    kept = {("clock.ticks", "ticks", "cpu (EPYC)"): Kept("2026-10-01T00:00:00+00:00", 100.0)}
    came = against_baseline(host("gpu01", result(measurement)), kept, 0.10).results[0]
    assert (came.outcome == "failed") is lost
    if lost:
        assert came.findings[0].expected == "100 M/s" and "baseline of 2026-10-01" in came.sentence


def test_another_card_is_not_held_to_the_old_ones_figures() -> None:
    kept = {("clock.ticks", "ticks", "GPU-1 (A100)"): Kept("2026-10-01", 100.0)}
    held = against_baseline(host("gpu01", result(ticks(1.0, "GPU-2 (A100)"))), kept, 0.10)
    assert held.results[0].outcome == "passed"


def fleet_of(values: list[float], device: str = "GPU-{} (A100)") -> list[HostProof]:
    return [host(f"gpu{n:02}", result(ticks(value, device.format(n)))) for n, value in enumerate(values)]


def found(hosts: tuple[HostProof, ...]) -> list[str]:
    return [
        one.host for one in hosts for came in one.results for finding in came.findings if finding.severity == "outlier"
    ]


def test_a_slow_host_among_its_peers_is_found_and_named_with_the_median() -> None:
    hosts = against_peers(fleet_of([100, 101, 99, 100, 60]))
    assert found(hosts) == ["gpu04"]
    assert hosts[4].results[0].sentence == (
        "ticks on GPU-4 (A100) is 40% worse than the median of 5 hosts with A100. Measured: 60 M/s; median: 100 M/s"
    )
    assert hosts[4].status == "failed" and {one.status for one in hosts[:4]} == {"passed"}


def test_hosts_with_other_cards_are_no_peers() -> None:
    hosts = [*fleet_of([100, 101, 99]), *fleet_of([60, 61, 59], "GPU-9{} (T4)")]
    assert found(against_peers(hosts)) == []


def test_a_host_with_eight_cards_counts_once_and_its_worst_card_is_found() -> None:
    def eight(name: str, worst: float) -> HostProof:
        cards = [ticks(value, f"GPU-{name}{n} (A100)") for n, value in enumerate([100.0] * 7 + [worst])]
        return host(name, result(*cards))

    hosts = against_peers([eight(f"h{n}", 98.0) for n in range(5)] + [eight("bad", 50.0)])
    assert [(one.host, finding.device) for one in hosts for finding in one.results[0].findings] == [
        ("bad", "GPU-bad7 (A100)")
    ]
    assert found(against_peers([eight("a", 98.0), eight("bad", 50.0)])) == []


def test_a_fleet_of_24_without_a_fault_has_no_finding_in_20_runs() -> None:
    chance = random.Random(20261123)  # noqa: S311 - noise
    alarms = 0
    for _ in range(20):
        hosts = [
            host(
                f"gpu{n:02}",
                result(
                    *(
                        Measurement(f"m{m}", chance.gauss(100, 3), "GB/s", f"GPU-{n} (A100)", better)
                        for m, better in KINDS
                    )
                ),
            )
            for n in range(24)
        ]
        alarms += len(found(against_peers(hosts)))
    assert alarms == 0


KINDS = [(number, "more" if number % 2 else "less") for number in range(10)]


def test_a_planted_slow_host_is_found_in_each_of_20_runs() -> None:
    chance = random.Random(7)  # noqa: S311 - noise
    for _ in range(20):
        values = [chance.gauss(100, 3) for _ in range(24)]
        values[5] = 60.0
        assert found(against_peers(fleet_of(values))) == ["gpu05"]


def test_the_exit_status_tells_what_was_not_read_from_what_failed() -> None:
    good, bad = host("a", result(ticks(1.0))), host("b", result(outcome="failed", sentence="x"))
    unread, held, none = (
        host("c", sentence="silent"),
        host("d", result(outcome="not run")),
        host("e", result(outcome="no GPU")),
    )
    assert [exit_status([one]) for one in (good, bad, unread, held, none)] == [0, 3, 1, 1, 0]
    assert exit_status([good, bad, unread]) == 1
    assert exit_status([good], stopped=True) == 1
    assert [one.status for one in (good, bad, unread, held, none)] == [
        "passed",
        "failed",
        "unread",
        "not proved",
        "no GPU",
    ]


def test_the_peers_nearest_to_the_median_are_measured_again_with_a_host_that_is_worse() -> None:
    values = {"a": 90.0, "b": 99.0, "c": 100.0, "d": 101.0, "e": 110.0, "f": 40.0}
    hosts = tuple(host(name, result(ticks(value), proof="base.memory")) for name, value in values.items())
    doubts = {"f": ["base.memory"]}
    beside = witnesses(against_peers(hosts), doubts)
    assert beside == dict.fromkeys("bcd", ("base.memory",))
    assert len(beside) == WITNESSES
    assert witnesses(hosts, doubts) == {}, "what is worse than its own baseline needs no peers"


def test_of_several_slow_hosts_none_is_the_others_witness() -> None:
    values = {"a": 100.0, "b": 101.0, "c": 99.0, "d": 100.0, "e": 40.0, "f": 41.0}
    hosts = tuple(host(name, result(ticks(value), proof="base.memory")) for name, value in values.items())
    compared = against_peers(hosts)
    beside = witnesses(compared, {"e": ["base.memory"], "f": ["base.memory"]})
    assert not {"e", "f"} & beside.keys()


def test_slow_hosts_that_are_measured_again_together_do_not_clear_each_other() -> None:
    def of(values: dict[str, float]) -> tuple[HostProof, ...]:
        return tuple(host(name, result(ticks(value), proof="base.memory")) for name, value in values.items())

    first = of({"a": 100.0, "b": 101.0, "c": 99.0, "d": 100.0, "e": 60.0, "f": 61.0, "g": 60.5, "h": 100.0})
    again = of({"a": 99.0, "e": 60.0, "f": 61.0, "g": 60.5, "b": 100.0})
    assert [one.host for one in against_peers(first, [again]) if one.status == "failed"] == ["e", "f", "g"]
    slowed = of({"a": 66.0, "e": 60.0, "f": 61.0, "g": 40.0, "b": 65.0})
    assert [one.host for one in against_peers(first, [slowed]) if one.status == "failed"] == ["g"]
