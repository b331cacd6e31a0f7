"""What figures of cards show: against the limits for their model, and each other."""

from __future__ import annotations

import pytest

from hostwright.prove.model import Expected, Measurement, Measurements, ProofFinding
from hostwright.standard.roles.cuda.proofs import judges
from hostwright.standard.roles.cuda.proofs.judges import HOST, PEER, WITHIN

EXPECTED = Expected("gpu01", cards_on_bus=8, gpus=8)
A100 = "NVIDIA A100-SXM4-80GB"
#: of a sound card of NDv4: GB/s; nvbandwidth on A100-SXM4-80GB gives 24 to 26 and 270, its memory carries 2,039
SOUND = {"host to device": 24.6, "device to host": 26.1, "within the card": 1560.0, "card to card": 272.0}


def device(index: int, model: str = A100) -> str:
    return f"GPU-0000000{index}-0000-0000-0000-000000000000 ({model})"


def copies(index: int, model: str = A100, identity: str = "20b2", **worse: float) -> list[Measurement]:
    """The rows of one card; ``host_to_device=0.5`` for half of the sound figure."""
    factors = {name.replace("_", " "): factor for name, factor in worse.items()}
    where = device(index, model)
    pair = f"{where.partition(' ')[0]} to GPU-00000009 ({model})"
    rows = [
        Measurement(name, figure * factors.get(name, 1.0), "GB/s", pair if "card to card" in name else where, "more")
        for name, figure in SOUND.items()
    ]
    rows += [Measurement("pci id", identity, "", where), Measurement("link", 31.5, "GB/s", where)]
    return [*rows, Measurement("peer access", "yes", "", pair), Measurement("wrong bytes", 0.0, "", where)]


def judged(*rows: list[Measurement], cards: int = 8) -> tuple[ProofFinding, ...]:
    every = [one for card in rows for one in card]
    return judges.bandwidth(Measurements((Measurement("cards", float(cards), "", "cpu"), *every)), EXPECTED)


def sound(count: int) -> list[list[Measurement]]:
    return [copies(index) for index in range(count)]


def test_a_sound_host_has_no_finding() -> None:
    assert judged(*sound(8)) == ()


@pytest.mark.parametrize(
    ("worse", "measured", "expected"),
    [
        ({"host_to_device": 0.5}, "12.3 GB/s", "21 GB/s at least"),  # a link that came up with 8 lanes
        ({"device_to_host": 0.5}, "13.05 GB/s", "21 GB/s at least"),
        ({"within_the_card": 0.5}, "780 GB/s", "1173 GB/s at least"),
        ({"card_to_card": 0.1}, "27.2 GB/s", "238 GB/s at least"),  # past NVLink
    ],
)
def test_a_slow_copy_is_below_the_limit_of_its_model(worse: dict[str, float], measured: str, expected: str) -> None:
    found = [finding for finding in judged(*sound(7), copies(7, **worse)) if finding.severity == "failed"]
    assert [(finding.measured, finding.expected) for finding in found] == [(measured, expected)]
    assert found[0].device.startswith("GPU-00000007")


def test_cards_without_peer_access_are_not_held_to_what_nvlink_gives() -> None:
    rows = copies(0, card_to_card=0.05)
    rows = [Measurement(one.name, "no", "", one.device) if one.name == "peer access" else one for one in rows]
    assert judged(rows) == ()


def test_a_model_that_nobody_publishes_is_held_to_its_link() -> None:
    """An RTX 3070 on a link of 16 GT/s with 16 lanes carries 31.5 GB/s; with half of the lanes 15.75."""
    model = "NVIDIA GeForce RTX 3070"
    assert judged(copies(0, model, "2484")) == ()
    (finding,) = judged(copies(0, model, "2484", host_to_device=0.5))
    assert "55% of the 31.5 GB/s of its PCIe link" in finding.sentence


def test_a_model_and_a_link_that_are_not_known_have_no_limit() -> None:
    rows = [one for one in copies(0, "Unknown", "ffff", host_to_device=0.01) if one.name != "link"]
    assert judged(rows) == ()


def test_a_card_that_is_slower_than_those_beside_it_is_an_outlier_though_above_the_limit() -> None:
    rows = [copies(index, device_to_host=1.2) for index in range(7)]
    (finding,) = judged(*rows, copies(7, device_to_host=0.9))
    assert (finding.severity, finding.measured) == ("outlier", "23.49 GB/s")
    assert finding.sentence.partition(". ")[2].startswith(
        "This is 25% slower than the host's other cards of this model"
    )


def test_cards_of_other_models_are_no_neighbours() -> None:
    assert judged(copies(0), copies(1, "NVIDIA T4", "1eb8", host_to_device=0.8)) == ()


@pytest.mark.parametrize("cards", [7, 0])
def test_a_missing_card_is_found(cards: int) -> None:
    (finding,) = judged(*sound(cards), cards=cards)
    assert finding.sentence == f"CUDA finds {cards} of 8 cards"


def test_changed_bytes_are_found() -> None:
    rows = [*copies(0)[:-1], Measurement("wrong bytes", 3.0, "", device(0))]
    assert [finding.measured for finding in judged(rows)] == ["3"]


def burned(**figures: float) -> Measurements:
    told = {"products": 9500.0, "products at first": 9700.0, "wrong results": 0.0, "differs from the processor": 0.0}
    told |= {"temperature": 71.0, "lowest clock": 1275.0}
    told |= {"slowed down by heat": 0.0, "slowed down by the hardware": 0.0}
    told |= {name.replace("_", " "): value for name, value in figures.items()}
    return Measurements(tuple(Measurement(name, value, "", device(0)) for name, value in told.items()))


def test_a_card_that_keeps_its_clocks_passes() -> None:
    assert judges.burn_in(burned(), EXPECTED) == ()


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({"products": 8600.0}, "the card lost 11% of its throughput under load"),
        (
            {"slowed_down_by_heat": 12.0},
            "heat lowered the card's clocks under load: in 12 % of the measurements (up to 71 °C",
        ),
        ({"slowed_down_by_the_hardware": 3.0}, "the hardware lowered the card's clocks under load"),
        ({"wrong_results": 1.0}, "repetitions of one matrix product gave different results under load: 1 times"),
        ({"differs_from_the_processor": 256.0}, "the card's results differ from the processor's: 256 times"),
    ],
)
def test_what_a_burn_in_shows(figures: dict[str, float], sentence: str) -> None:
    (finding,) = judges.burn_in(burned(**figures), EXPECTED)
    assert finding.sentence.startswith(sentence)
    assert finding.severity == "failed"


def test_a_wrong_word_is_named_with_its_place() -> None:
    rows = (
        Measurement("wrong words", 2.0, "", device(3)),
        Measurement("first wrong word", "byte 4096: wrote 0, read 4", "", device(3)),
    )
    (finding,) = judges.memory(Measurements(rows), EXPECTED)
    assert finding.sentence.endswith("2 times (first at byte 4096: wrote 0, read 4)")


@pytest.mark.parametrize("rows", [(), (Measurement("wrong words", "many", "", "GPU-1"),)])
def test_a_host_that_prints_nonsense_is_judged_or_fails_and_never_passes_by_error(
    rows: tuple[Measurement, ...],
) -> None:
    for judge in (judges.bandwidth, judges.memory, judges.burn_in):
        try:
            findings = judge(Measurements(rows), EXPECTED)
        except (ValueError, TypeError):  # which the engine makes a failure of
            continue
        assert all(finding.severity == "failed" for finding in findings)


def test_limits_are_those_of_cards_and_no_slips() -> None:
    """No limit is far from what the least of these cards is built for: from a P4 (192 GB/s) to an H100 (3,350)."""
    assert all(5 < value < 64 for value in HOST.values())
    assert all(200 < value < 450 for value in PEER.values())
    assert all(100 < value < 3350 for value in WITHIN.values())
    assert all(len(key) == 4 and int(key, 16) for key in (*HOST, *PEER, *WITHIN))
