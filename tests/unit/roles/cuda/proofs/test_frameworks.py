"""What a framework finds on a host, judged: the stack's versions, code for each card, all cards, right results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostwright.prove.model import CPU, Expected, ProofFinding
from hostwright.standard.roles.cuda.proofs.datasheets import DATASHEETS, FORMATS, by_pci_id
from hostwright.standard.roles.cuda.proofs.frameworks import DevicesJudge
from hostwright.standard.roles.driver.chips import chip
from hostwright.standard.roles.pytorch.proofs.programs import products
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

JUDGE = DevicesJudge("PyTorch", {"pytorch": ("version of PyTorch", "2.14.1"), "cudnn": ("version of cuDNN", "9.24.0")})
#: as torch 2.14.1 tells it
ARCHITECTURES = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
ON_CPU: Rows = {
    ("pytorch", CPU): "2.14.1",
    ("cudnn", CPU): "9.24.0",
    ("architectures", CPU): ARCHITECTURES,
    ("product", CPU): 0.0,
    ("convolution", CPU): 4e-7,
}
WHOLE: Rows = {
    **ON_CPU,
    ("product", T4): 0.0,
    ("convolution", T4): 4e-5,
    ("gpu", T4): "Tesla T4",
    ("compute capability", T4): "7.5",
    ("pci device", T4): "0x1EB810DE",
}


def found(rows: Rows, expected: Expected = ONE_GPU) -> tuple[ProofFinding, ...]:
    return JUDGE.judge(measured(rows), expected)


def test_a_host_as_the_stack_wants_it_has_no_finding() -> None:
    assert found(WHOLE) == ()
    assert found({**ON_CPU, ("gpu", ""): None, ("product", ""): None}, WITHOUT) == ()


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ({("pytorch", CPU): "2.15.0"}, "version of PyTorch: found 2.15.0, expected 2.14.1"),
        ({("cudnn", CPU): "9.10.2"}, "version of cuDNN: found 9.10.2, expected 9.24.0"),
        ({("product", T4): 0.25}, "the test product of integer matrices differs too much from its reference"),
        ({("convolution", T4): "not a number"}, "the test convolution has values that are infinite or not numbers"),
        ({("gpu", T4): "Tesla P4"}, "CUDA and the driver report different names for this card"),
        (
            {("product", T4): "AcceleratorError: CUDA error: an illegal memory access was encountered"},
            "the test product of integer matrices could not be computed: AcceleratorError: CUDA error: an illegal"
            " memory access was encountered",
        ),
    ],
)
def test_what_is_wrong_fails_in_words(rows: Rows, sentence: str) -> None:
    (finding,) = found({**WHOLE, **rows})
    assert (finding.severity, finding.sentence) == ("failed", sentence)


def test_a_card_that_the_wheel_has_no_code_for_is_named_with_its_architecture_first() -> None:
    """What PyTorch raises then says less: no kernel image is available for execution on the device."""
    none = "AcceleratorError: CUDA error: no kernel image is available for execution on the device"
    rows = {**WHOLE, ("architectures", CPU): "sm_80 sm_90 compute_90", ("product", T4): none}
    first, second = found(rows)
    assert first.sentence == ("PyTorch has no code for this card (sm_75): it is built for sm_80 sm_90 compute_90")
    assert (first.device, first.measured) == (T4, "sm_80 sm_90 compute_90")
    assert second.sentence.endswith("no kernel image is available for execution on the device")


@pytest.mark.parametrize(
    ("capability", "built", "runs"),
    [
        ("8.9", ARCHITECTURES, True),  # code of 8.6
        ("12.1", ARCHITECTURES, True),
        ("7.0", ARCHITECTURES, False),  # V100 with a wheel of CUDA 13
        ("10.0", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90", False),  # B200 with torch 2.7
        ("9.0", "sm_80 compute_80", True),  # PTX is compiled by the driver
        ("8.0", "sm_86 compute_86", False),
        ("9.0", "sm_90a", True),
        ("7.5", "none", True),  # no list: another finding says why
        ("7.5", "sm_ compute sm_999999", True),
        ("x", ARCHITECTURES, True),
    ],
)
def test_code_runs_on_its_own_major_version_and_ptx_on_all_later_ones(capability: str, built: str, runs: bool) -> None:
    rows = {**WHOLE, ("compute capability", T4): capability, ("architectures", CPU): built, ("pci device", T4): ""}
    assert (not [one for one in found(rows) if "no code" in one.sentence]) is runs


def test_a_card_that_is_missing_is_missed() -> None:
    assert severities(found(WHOLE, TWO_GPUS)) == [("failed", OTHER_T4)]
    (finding,) = found(WHOLE, replace(ONE_GPU, cards_on_bus=2))
    assert finding.sentence == "PyTorch computes on 1 of the 2 cards that are on the PCI bus"
    assert severities(found({**ON_CPU, ("gpu", ""): None})) == [("failed", T4)]


def test_every_data_sheet_is_of_a_chip_that_is_known_and_has_the_formats() -> None:
    for sheet in DATASHEETS:
        assert 0 < sheet.tflops[0] <= sheet.tflops[1] <= sheet.tflops[2] == sheet.tflops[3], sheet.card
        for number in sheet.ids:
            known = chip(int(number, 16))
            assert known is not None, sheet.card
            assert (sheet.tflops[4] > 0) is (known.capability >= (8, 9)), sheet.card


def test_the_program_measures_what_the_data_sheets_have() -> None:
    assert tuple(each.name for each in products.FORMATS) == FORMATS
    assert {name for figures in by_pci_id().values() for name in figures} == {*FORMATS, products.MEMORY}
    assert by_pci_id()["20b2"] == {"fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312, "memory copy": 2039}
