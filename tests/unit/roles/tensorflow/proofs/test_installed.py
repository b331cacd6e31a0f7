"""Findings about the installed TensorFlow: versions of the stack, every GPU, and correct results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostwright.prove.model import CPU, ProofFinding
from hostwright.standard.roles.tensorflow.proofs.installed import TensorflowJudge
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

INSTALLED = TensorflowJudge("2.9.0", "11.2.2", "/usr/local/cuda-11.2", "8.1.0")
ON_CPU: Rows = {
    ("tensorflow", CPU): "2.9.0",
    ("built with cuda", CPU): True,
    ("built for cuda", CPU): "11.2",
    ("built for cudnn", CPU): "8",
    ("ptxas", CPU): "/usr/local/cuda-11.2/bin/ptxas V11.2.152",
    ("product", CPU): 0.0,
    ("convolution", CPU): 3.9e-7,
}


def on_gpu(device: str) -> Rows:
    return {
        ("product", device): 0.0,
        ("convolution", device): 4e-5,
        ("gpu", device): "Tesla T4",
        ("compute capability", device): "7.5",
        ("cudnn", device): "8.1.0",
        ("memory with growth", device): 560.0,
        ("memory", device): 15109.0,
        ("pci device", device): "0x1EB810DE",
    }


def found(rows: Rows, expected=ONE_GPU, installed: TensorflowJudge = INSTALLED) -> tuple[ProofFinding, ...]:
    return installed.judge(measured(rows), expected)


WHOLE = {**ON_CPU, **on_gpu(T4)}


def test_a_host_as_the_stack_wants_it_has_no_finding() -> None:
    assert found(WHOLE) == ()
    assert found({**WHOLE, **on_gpu(OTHER_T4)}, TWO_GPUS) == ()


def test_a_host_without_a_gpu_that_should_have_none_has_no_finding() -> None:
    assert found({**ON_CPU, ("gpu", ""): None, ("convolution", ""): None}, WITHOUT) == ()


def test_the_processors_model_beside_its_name_changes_nothing() -> None:
    """The engine adds the model to a program's device ``cpu``."""
    named = {(name, device.replace(CPU, "cpu (Xeon Gold 6230)")): value for (name, device), value in WHOLE.items()}
    assert found(named) == ()


def test_cuda_and_cudnn_are_not_judged_on_a_host_without_them() -> None:
    rows: Rows = {**ON_CPU, ("ptxas", CPU): "", ("built with cuda", CPU): False, ("built for cuda", CPU): "none"}
    assert found(rows, WITHOUT, TensorflowJudge("2.9.0")) == ()


@pytest.mark.parametrize("device", [CPU, T4])
@pytest.mark.parametrize(
    ("name", "value"),
    [("product", 1e-9), ("product", "not a number"), ("convolution", 0.02), ("convolution", "infinite")],
)
def test_a_wrong_result_is_a_failure_of_its_device(name: str, value: float | str, device: str) -> None:
    (finding,) = found({**WHOLE, (name, device): value})
    assert finding.severity == "failed" and finding.device == device


def test_a_result_that_was_never_compared_is_a_failure() -> None:
    rows = {key: value for key, value in WHOLE.items() if key[0] != "product"}
    assert [finding.sentence for finding in found(rows)] == [
        "the test product of integer matrices was not compared with its reference: the test program ended too early"
    ]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({("tensorflow", CPU): "2.9.1"}, "version of TensorFlow: found 2.9.1, expected 2.9.0"),
        ({("built with cuda", CPU): False}, "TensorFlow is built with CUDA: found no, expected yes"),
        ({("built for cuda", CPU): "11.8"}, "TensorFlow is built for CUDA: found 11.8, expected 11.2"),
        ({("cudnn", T4): "8.2.0"}, "computations use another cuDNN than the stack's"),
        ({("cudnn", T4): "not loaded"}, "computations use another cuDNN than the stack's"),
        ({("ptxas", CPU): "/usr/bin/ptxas V11.8.89"}, "the first ptxas on PATH is not the toolkit's"),
        (
            {("memory with growth", T4): 14800.0},
            "TensorFlow's memory growth has no effect: a small program reserves most of the card's memory",
        ),
        ({("gpu", T4): "Tesla P4"}, "CUDA and the driver report different names for this card"),
    ],
)
def test_what_is_not_the_stacks_is_a_failure(rows: Rows, sentence: str) -> None:
    (finding,) = found({**WHOLE, **rows})
    assert finding.severity == "failed" and finding.sentence == sentence


def test_a_missing_ptxas_says_what_to_do() -> None:
    (finding,) = found({**WHOLE, ("ptxas", CPU): ""})
    assert "install the toolkit's compiler" in finding.sentence


def test_a_lower_compute_capability_than_the_chips_means_driver_and_cuda_do_not_fit() -> None:
    (finding,) = found({**WHOLE, ("compute capability", T4): "7.0"})
    assert finding.device == T4 and (finding.measured, finding.expected) == ("7.0", "7.5")


@pytest.mark.parametrize("text", ["", "[N/A]", "0x", "1EB8", "0xZZZZ10DE", "0x1EB810DE" * 1000])
def test_a_pci_id_that_is_none_judges_nothing(text: str) -> None:
    assert found({**WHOLE, ("pci device", T4): text, ("compute capability", T4): "7.0"}) == ()


def test_a_card_that_the_driver_has_and_tensorflow_does_not_is_a_failure_of_that_card() -> None:
    assert severities(found(WHOLE, TWO_GPUS)) == [("failed", OTHER_T4)]


def test_a_card_of_another_model_than_the_inventory_says_fails() -> None:
    assert found(WHOLE, replace(ONE_GPU, models=("Tesla T4",))) == ()
    assert found(WHOLE, replace(ONE_GPU, models=("Tesla V100-SXM2-16GB", "Tesla T4"))) == ()
    (finding,) = found(WHOLE, replace(ONE_GPU, models=("A100-SXM4-80GB",)))
    assert finding.severity == "failed" and "hostwright_gpu_model" in finding.sentence
    assert (finding.device, finding.measured, finding.expected) == (T4, "Tesla T4", "A100-SXM4-80GB")


def test_a_card_that_is_gone_from_the_driver_is_missed_by_the_inventory_and_by_the_bus() -> None:
    (finding,) = found(WHOLE, replace(ONE_GPU, gpus=2))
    assert finding.severity == "failed" and "hostwright_gpus" in finding.sentence
    assert (finding.measured, finding.expected) == ("1", "2")
    (finding,) = found(WHOLE, replace(ONE_GPU, cards_on_bus=2))
    assert finding.severity == "failed" and "PCI bus" in finding.sentence


def test_no_card_at_all_where_one_is_expected_is_never_a_pass() -> None:
    rows = {**ON_CPU, ("gpu", ""): None}
    assert severities(found(rows)) == [("failed", T4)]
    unread = replace(ONE_GPU, cards=None)
    assert severities(found(rows, unread)) == [("failed", CPU), ("failed", CPU)]


def test_cards_without_uuids_are_counted() -> None:
    """If nvidia-smi is missing in the environment, TensorFlow identifies GPUs only by address."""
    device = "GPU 0000:3b:00.0 (Tesla T4)"
    assert found({**ON_CPU, **on_gpu(device)}) == ()
    assert severities(found({**ON_CPU, **on_gpu(device)}, TWO_GPUS)) == [("failed", OTHER_T4)]
