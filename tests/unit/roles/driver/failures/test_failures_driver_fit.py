"""Kernels and cards that a driver release does not fit: one finding, with what works or what the kernel said."""

from __future__ import annotations

import pytest

from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer
from hostwright.resources.system.kernel import HEADERS, KERNEL_GONE
from hostwright.standard.roles.driver.nvsmi.report import NVIDIA_SMI
from hostwright.standard.roles.driver.xids.kernellog import KERNEL_LOG
from tests.unit.roles.test_role_driver import BARE, OTHER, T4, V, state
from tests.unit.support.driver_contexts import (
    BOOT,
    H100,
    INIT,
    KERNEL,
    LOADING,
    MISMATCH,
    NO_DEVICES,
    NO_MODULE,
    NOW,
    SMI,
    STACK,
    STATE,
    TOO_NEW,
    UNLOADED,
    evidence,
    failed_build,
    findings,
    log,
)
from tests.unit.support.known import BY_NAME
from tests.unit.support.stacks import with_values


@pytest.mark.parametrize("there", [BARE, NO_MODULE])
def test_a_kernel_that_is_too_new_is_told_with_what_works(there: str) -> None:
    found = findings({**TOO_NEW, STATE: there, HEADERS: Answer(1, "")})
    assert list(found) == ["kernel-unsupported"]
    sentence, works = found["kernel-unsupported"]
    assert sentence == f"driver {V} does not support kernel 6.8.0-40-generic: its module supports kernels <6.3"
    assert works.startswith("what works: driver 470.2")


def test_the_compilers_words_are_told_beside_a_kernel_that_is_too_new() -> None:
    built = failed_build("nv.c:1: error: x", kernel="6.8.0-40-generic")
    assert findings({**TOO_NEW, **built})["kernel-unsupported"][-1] == "nv.c:1: error: x"


def test_a_stacks_own_kernels_win() -> None:
    own = with_values(STACK, driver={"kernels": "<6.9"})
    assert findings({**TOO_NEW}, stack=own) == {}


def test_a_removed_kernel_is_told_and_nothing_that_follows_from_it() -> None:
    gone = {KERNEL_GONE: "5.10.0-30-amd64\n", STATE: NO_MODULE, HEADERS: Answer(1, "")}
    assert findings(gone) == {
        "kernel-removed": [
            f"running: {KERNEL}, removed; to be booted: an installed kernel (5.10.0-30-amd64)",
        ]
    }


@pytest.mark.parametrize("there", [BARE, UNLOADED, state()])
def test_a_card_that_is_too_new_is_told(there: str) -> None:
    found = findings({PCI: H100, STATE: there, NVIDIA_SMI: NO_DEVICES})
    assert list(found) == ["gpu-unsupported"]
    assert "not Hopper (GH100)" in found["gpu-unsupported"][0]


def test_a_card_that_no_table_knows_is_told_by_the_kernel() -> None:
    lines = (
        LOADING,
        "NVRM: The NVIDIA GPU 0000:19:00.0 (PCI ID: 10de:ffff)",
        "NVRM: installed in this system is not supported by the",
        f"NVRM: NVIDIA {V} driver release.",
    )
    unknown = {PCI: T4 + "0x10de 0x030200 0xffff\n", KERNEL_LOG: log(*lines)}
    assert evidence("gpu-unsupported", unknown) == [f"{lines[1]} installed in this system is not supported by the"]
    described = {**unknown, NVIDIA_SMI: SMI.replace("3B:00", "19:00")}
    assert evidence("gpu-unsupported", described) == []


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("installed in this system requires use of the NVIDIA open kernel modules.", "needs the open kernel module"),
        ("installed in this system is not supported by open", "older than Turing"),
    ],
)
def test_a_card_that_needs_the_other_kind_of_module_is_told_so(reason: str, words: str) -> None:
    lines = (LOADING, "NVRM: The NVIDIA GPU 0000:19:00.0 (PCI ID: 10de:ffff)", f"NVRM: {reason}")
    unknown = {PCI: T4 + "0x10de 0x030200 0xffff\n", KERNEL_LOG: log(*lines)}
    [told] = evidence("gpu-unsupported", unknown)
    assert words in BY_NAME["gpu-unsupported"].sentences(told)[0]


def test_a_card_whose_twin_works_is_supported_whatever_the_kernel_says() -> None:
    named = "NVRM: The NVIDIA GPU 0000:19:00.0 (PCI ID: 10de:1eb8)"
    lines = (LOADING, named, "NVRM: installed in this system is not supported by the")
    assert evidence("gpu-unsupported", {PCI: T4 + T4, KERNEL_LOG: log(*lines)}) == []


def test_what_the_kernel_said_before_the_boot_is_history() -> None:
    before = (NOW - BOOT).total_seconds() / 3600 + 1
    rejected = "Loading of module with unavailable key is rejected"
    for lines, name in ((INIT, "gpu-init-failed"), (MISMATCH, "foreign-driver-library")):
        assert evidence(name, {NVIDIA_SMI: NO_DEVICES, KERNEL_LOG: log(lines, hours=before)}) == []
    old = {STATE: UNLOADED, KERNEL_LOG: log(rejected, hours=before)}
    assert list(findings(old)) == ["module-not-loaded"]


def test_what_the_kernel_said_before_the_module_was_loaded_again_is_history() -> None:
    text = log(INIT, hours=2) + log(LOADING, hours=1).partition("journal\n")[2]
    assert evidence("gpu-init-failed", {NVIDIA_SMI: NO_DEVICES, KERNEL_LOG: text}) == []


def test_a_card_that_answers_has_started() -> None:
    assert findings({KERNEL_LOG: log(LOADING, INIT)}) == {}


def test_a_lost_card_is_no_card_that_does_not_start() -> None:
    fell = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    assert list(findings({NVIDIA_SMI: NO_DEVICES, KERNEL_LOG: log(LOADING, INIT, fell)})) == ["gpu-lost"]


def test_the_drivers_last_words_stand_beside_a_module_that_is_not_loaded() -> None:
    said = {STATE: UNLOADED, KERNEL_LOG: log(LOADING, "NVRM: something of its own")}
    assert evidence("module-not-loaded", said)[1] == "NVRM: something of its own"


def test_nothing_is_in_use_of_its_own_version() -> None:
    assert findings({KERNEL_LOG: log(LOADING, MISMATCH.replace(OTHER, V))}) == {}
    assert list(findings({STATE: state(loaded=OTHER), KERNEL_LOG: log(LOADING, MISMATCH)})) == ["version-mismatch"]
