"""Toolkits: the drivers that run their code, the GPUs that they have code for, and the newest gcc of each."""

from __future__ import annotations

import pytest

from hostwright.standard.roles.cuda.rules import (
    CUBIN_FLOORS,
    DRIVER_FLOORS,
    has_code_for_the_gpus,
    newest_gcc,
    runs_on_the_driver,
)
from tests.unit.stack.test_rules import nvidia

K80, P100, V100, T4, A100, L40S, H100, B200, B300, RTX5090, GB10 = (
    0x102D, 0x15F8, 0x1DB4, 0x1EB8, 0x20B0, 0x26B9, 0x2330, 0x2901, 0x3182, 0x2B85, 0x2E12,
)  # fmt: skip


@pytest.mark.parametrize(
    ("cuda", "driver", "fits"),
    [
        ("12.8.1", "525.60.13", True),  # minor-version compatibility
        ("12.8.1", "525.60.11", False),
        ("12.9.1", "470.256.02", False),
        ("13.0.2", "580.65.06", True),
        ("13.0.2", "570.211.01", False),  # "The NVIDIA driver on your system is too old (found version 12080)"
        ("13.2.1", "580.178.04", True),
        ("11.8.0", "450.80.02", True),
    ],
)
def test_a_driver_runs_the_compiled_code_of_its_major_version(cuda: str, driver: str, fits: bool) -> None:
    assert (runs_on_the_driver(cuda, driver) is None) == fits


@pytest.mark.parametrize(
    ("cuda", "card", "words"),
    [
        ("12.6.3", B200, "Blackwell GPUs (GB100) need CUDA 12.8 or newer, but the stack has 12.6.3"),
        ("12.6.3", RTX5090, "need CUDA 12.8"),
        ("12.8.1", B300, "Blackwell GPUs (GB110) need CUDA 12.9"),
        ("12.8.1", GB10, "Blackwell GPUs (GB10) need CUDA 12.9"),
        ("11.4.4", L40S, "need CUDA 11.8"),
        ("11.4.4", H100, "need CUDA 11.8"),
        (
            "13.0.2",
            V100,
            "CUDA 12.9 is the last release with code for Volta GPUs (GV100), but the stack has CUDA 13.0.2",
        ),
        ("13.2.1", P100, "CUDA 12.9 is the last release with code for Pascal"),
        ("12.0.0", K80, "CUDA 11.8 is the last release with code for Kepler"),
    ],
)
def test_a_toolkit_without_code_for_a_card_is_refused(cuda: str, card: int, words: str) -> None:
    misfit = has_code_for_the_gpus(cuda, nvidia(card))
    assert misfit is not None
    assert (misfit.rule, words in misfit.sentence) == ("gpu-cuda", True)


@pytest.mark.parametrize(
    ("cuda", "card"),
    [
        ("12.8.1", B200),
        ("12.9.1", B300),
        ("12.9.1", V100),
        ("12.9.1", P100),
        ("11.8.0", K80),
        ("13.0.2", T4),
        ("13.0.2", B200),
        ("11.2.2", A100),
        ("11.8.0", H100),
    ],
)
def test_a_toolkit_with_code_for_a_card_is_not(cuda: str, card: int) -> None:
    assert has_code_for_the_gpus(cuda, nvidia(card)) is None


@pytest.mark.parametrize(
    ("cuda", "gcc"),
    [("11.2.2", 10), ("11.4.0", 10), ("11.4.1", 11), ("12.3.2", 12), ("12.6.3", 13), ("12.9.1", 14), ("13.3.1", 15)],
)
def test_the_newest_gcc_of_a_toolkit(cuda: str, gcc: int) -> None:
    assert newest_gcc(cuda) == gcc


def test_a_release_after_the_table_has_no_known_compiler() -> None:
    assert (newest_gcc("13.5.0"), newest_gcc("14.0.0")) == (16, None)


def test_every_toolkit_has_the_floor_of_its_major_version() -> None:
    assert {version.partition(".")[0] for version in DRIVER_FLOORS} == set(CUBIN_FLOORS)
