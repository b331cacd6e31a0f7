"""Findings in benchmarks, settings, formats and trainings over several devices: faults are found, and no more."""

from __future__ import annotations

import pytest

from hostwright.prove.model import CPU, Expected, ProofFinding
from hostwright.standard.roles.tensorflow.proofs import judging
from tests.unit.roles.tensorflow.proofs.measuring import (
    ONE_GPU,
    OTHER_T4,
    T4,
    TWO_GPUS,
    WITHOUT,
    Rows,
    measured,
    severities,
)

ALL = "all GPUs (2 × Tesla T4)"

BENCHMARK: Rows = {
    ("seconds per epoch", CPU): 12.0,
    ("samples per second", CPU): 5000.0,
    ("loss", CPU): 2.32,
    ("prediction", CPU): 3e-7,
    ("seconds per epoch", T4): 2.0,
    ("samples per second", T4): 30000.0,
    ("times the processor", T4): 6.0,
    ("loss", T4): 2.31,
    ("prediction", T4): 6e-7,
}
GAINS: Rows = {
    ("step", CPU): 50.0,
    ("step", T4): 20.0,
    ("gain of xla", T4): 1.2,
    ("gain of mixed precision", T4): 1.9,
    ("gain of autotuning", T4): 1.1,
    ("first loss with xla", T4): 1e-6,
    ("first loss with mixed precision", T4): 3e-3,
    ("first loss without autotuning", T4): 1e-6,
}
FORMATS: Rows = {
    (name, device): value
    for device in (CPU, T4)
    for name, value in {"accuracy": 1.0, "trained": 2e-7, "savedmodel": 2e-7}.items()
} | {("tf lite", CPU): 1e-7, ("tf-trt", T4): "no TensorRT on this host"}
INPUT: Rows = {
    ("records", CPU): 23552.0,
    ("records changed", CPU): 0.0,
    ("records read", CPU): 900.0,
    ("images prepared", CPU): 3000.0,
    ("images trained from memory", T4): 220.0,
    ("images trained from disk", T4): 215.0,
}
MIRRORED: Rows = {
    ("devices", ALL): 2.0,
    ("learned beside one device", ALL): 4e-7,
    ("learned beside numpy", ALL): 8e-7,
    ("scaling efficiency", ALL): 91.0,
    ("utilisation", T4): 95.0,
    ("utilisation", OTHER_T4): 93.0,
}
ON_PROCESSOR: Rows = {
    ("devices", CPU): 2.0,
    ("learned beside one device", CPU): 4e-7,
    ("learned beside numpy", CPU): 8e-7,
    ("scaling efficiency", ""): None,
    ("utilisation", ""): None,
}


def dense(rows: Rows, expected: Expected = ONE_GPU) -> tuple[ProofFinding, ...]:
    return judging.dense(measured(rows), expected)


def gains(rows: Rows, expected: Expected = ONE_GPU) -> tuple[ProofFinding, ...]:
    return judging.gains(measured(rows), expected)


def formats(rows: Rows, expected: Expected = ONE_GPU, **units: str) -> tuple[ProofFinding, ...]:
    return judging.formats(measured(rows, **units), expected)


def feeding(rows: Rows, expected: Expected = ONE_GPU) -> tuple[ProofFinding, ...]:
    return judging.feeding(measured(rows), expected)


def mirrored(rows: Rows, expected: Expected = TWO_GPUS) -> tuple[ProofFinding, ...]:
    return judging.mirrored(measured(rows), expected)


def test_good_hosts_have_no_finding() -> None:
    assert dense(BENCHMARK) == gains(GAINS) == formats(FORMATS) == mirrored(MIRRORED) == feeding(INPUT) == ()
    assert mirrored(ON_PROCESSOR, WITHOUT) == judging.workers(measured(ON_PROCESSOR), WITHOUT) == ()
    assert mirrored(ON_PROCESSOR, ONE_GPU) == ()  # with one GPU, the training uses the CPU's two logical devices
    convolutional = {key: value for key, value in BENCHMARK.items() if key[0] != "prediction"}
    assert judging.benchmark(measured(convolutional), ONE_GPU) == ()


@pytest.mark.parametrize("device", [CPU, T4])
@pytest.mark.parametrize("value", [0.05, "not a number"])
def test_a_benchmark_that_computes_wrongly_fails_however_fast_it_is(device: str, value: float | str) -> None:
    assert severities(dense({**BENCHMARK, ("prediction", device): value})) == [("failed", device)]


@pytest.mark.parametrize("value", [7.5, -1.0, "not a number", "infinite"])
def test_a_training_that_diverges_fails(value: float | str) -> None:
    assert severities(dense({**BENCHMARK, ("loss", T4): value})) == [("failed", T4)]


def test_a_gpu_slower_than_the_processor_is_noted() -> None:
    assert severities(dense({**BENCHMARK, ("times the processor", T4): 0.6})) == [("note", T4)]


def test_a_card_without_a_figure_fails() -> None:
    assert severities(dense(BENCHMARK, TWO_GPUS)) == [("failed", OTHER_T4)]
    assert severities(gains(GAINS, TWO_GPUS)) == [("failed", OTHER_T4)]
    assert severities(formats(FORMATS, TWO_GPUS)) == [("failed", OTHER_T4)]
    assert severities(feeding(INPUT, TWO_GPUS)) == [("failed", OTHER_T4)]


def test_a_program_that_measured_nothing_is_never_a_pass() -> None:
    judges = (judging.dense, judging.benchmark, judging.gains, judging.formats, judging.feeding, judging.mirrored)
    for judge in (*judges, judging.workers):
        assert [finding.severity for finding in judge(measured({}), WITHOUT)].count("failed") > 0, judge.__name__


@pytest.mark.parametrize(
    "name", ["first loss with xla", "first loss with mixed precision", "first loss without autotuning"]
)
def test_a_setting_that_changes_the_result_fails(name: str) -> None:
    assert severities(gains({**GAINS, (name, T4): 0.3})) == [("failed", T4)]


def test_a_setting_that_loses_is_noted() -> None:
    assert severities(gains({**GAINS, ("gain of xla", T4): 0.7})) == [("note", T4)]


@pytest.mark.parametrize(("name", "device"), [("trained", T4), ("savedmodel", T4), ("tf lite", CPU)])
def test_a_format_that_predicts_otherwise_fails(name: str, device: str) -> None:
    assert severities(formats({**FORMATS, (name, device): 1e-2})) == [("failed", device)]


def test_a_network_that_does_not_learn_fails() -> None:
    assert severities(formats({**FORMATS, ("accuracy", T4): 0.25})) == [("failed", T4)]


def test_records_that_are_lost_or_changed_fail() -> None:
    assert severities(feeding({**INPUT, ("records changed", CPU): 1.0})) == [("failed", CPU)]


def test_a_card_that_waits_for_its_images_is_noted() -> None:
    (finding,) = feeding({**INPUT, ("images trained from disk", T4): 150.0})
    assert (finding.severity, finding.device, finding.measured, finding.expected) == (
        "note",
        T4,
        "150 1/s",
        "220 1/s, as from memory",
    )
    assert severities(feeding({**INPUT, ("images trained from disk", T4): "not a number"})) == [("failed", T4)]


def test_processors_that_feed_one_card_and_not_all_are_noted() -> None:
    both = {("images trained from memory", OTHER_T4): 220.0, ("images trained from disk", OTHER_T4): 218.0}
    assert feeding({**INPUT, **both}, TWO_GPUS) == ()
    (finding,) = feeding({**INPUT, **both, ("images prepared", CPU): 300.0}, TWO_GPUS)
    assert (finding.severity, finding.device, finding.measured) == ("note", CPU, "300 1/s")


def test_a_processor_that_trains_slowly_waits_for_nothing() -> None:
    """Without a GPU the CPU both prepares and trains, so that each slows the other."""
    rows = {(name, CPU if device == T4 else device): value for (name, device), value in INPUT.items()}
    assert feeding({**rows, ("images trained from disk", CPU): 20.0}, WITHOUT) == ()


def test_tensorrt_is_judged_where_it_is() -> None:
    unit = "of the largest value"
    assert formats({**FORMATS, ("tf-trt", T4): 1e-5}, tf_trt=unit) == ()
    assert severities(formats({**FORMATS, ("tf-trt", T4): 0.1}, tf_trt=unit)) == [("failed", T4)]
    assert severities(formats({**FORMATS, ("tf-trt", T4): "not a number"}, tf_trt=unit)) == [("failed", T4)]


@pytest.mark.parametrize("name", ["learned beside one device", "learned beside numpy"])
@pytest.mark.parametrize("value", [0.01, "not a number"])
def test_devices_that_learn_something_else_together_fail(name: str, value: float | str) -> None:
    assert severities(mirrored({**MIRRORED, (name, ALL): value})) == [("failed", ALL)]
    rows: Rows = {**ON_PROCESSOR, (name, CPU): value}
    assert severities(judging.workers(measured(rows), WITHOUT)) == [("failed", CPU)]


def test_a_card_that_did_not_train_with_the_others_fails() -> None:
    assert severities(mirrored(ON_PROCESSOR)) == [("failed", CPU)]


def test_cards_that_are_together_no_faster_than_one_are_found() -> None:
    assert severities(mirrored({**MIRRORED, ("scaling efficiency", ALL): 45.0})) == [("outlier", ALL)]


def test_a_card_that_is_used_less_than_the_others_is_found() -> None:
    assert severities(mirrored({**MIRRORED, ("utilisation", OTHER_T4): 40.0})) == [("outlier", OTHER_T4)]


def test_cards_that_wait_for_their_input_are_noted() -> None:
    rows: Rows = {**MIRRORED, ("utilisation", T4): 20.0, ("utilisation", OTHER_T4): 18.0}
    assert severities(mirrored(rows)) == [("note", T4)]
