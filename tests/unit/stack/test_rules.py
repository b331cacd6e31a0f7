"""Incompatible combinations are rejected, with the rule, its source and the nearest combination that works."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hostwright.resources.python.environments import Interpreter
from hostwright.stack.fitting import misfits, nearest_fit
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack
from hostwright.stack.versions import kernel_version, version
from hostwright.standard.roles.cuda.rules import DRIVER_FLOORS
from hostwright.standard.roles.cuda.wheels import PTX_FLOORS
from hostwright.standard.roles.cudnn.rules import CUDNNS
from hostwright.standard.roles.driver.chips import CHIPS, NVIDIA, Architecture, chip
from hostwright.standard.roles.driver.rules import DRIVERS, gpus_of
from hostwright.standard.roles.tensorflow.rules import TENSORFLOWS
from tests.unit.support.stacks import RULES, check_host, check_stack, load_stack, with_values

STACK = load_stack("tensorflow-2.9", (Path(__file__).parents[3] / "inventory" / "stacks",))

#: the combination for which this project was made
HOUSE = {choice.name: choice.usual for role in RULES if role.role not in ("pytorch", "jax") for choice in role.choices}
ALL_RULES = [rule for role in RULES for rule in role.rules]


def nvidia(*devices: int) -> tuple[tuple[int, int], ...]:
    """NVIDIA cards with their PCI ids."""
    return tuple((NVIDIA, device) for device in devices)


#: a host that fits: an A100 on Ubuntu 20.04
GOOD = HostFacts(
    distribution="ubuntu",
    version="20.04",
    kernel="5.15.0-91-generic",
    machine="x86_64",
    gpus=nvidia(0x20B0, 0x20B0),
    avx=True,
    pythons=("3.8",),
    memory_bytes=64_000_000_000,
    free_bytes=100_000_000_000,
)


def changed(**parts: dict[str, Any]) -> Stack:
    """The stack with some values of some sections replaced."""
    return with_values(STACK, **parts)


def driver(release: str, **more: Any) -> Stack:
    return changed(driver={"version": release, "fabric_manager": None, **more})


def test_the_stack_and_a_good_host_fit() -> None:
    assert check_stack(STACK) == []
    assert check_host(STACK, GOOD) == []


def test_unknown_facts_refuse_no_host() -> None:
    assert check_host(STACK, HostFacts("ubuntu", "22.04")) == []


@pytest.mark.parametrize(
    ("stack", "rule", "works"),
    [
        (changed(cuda={"version": "11.4.0"}), "tensorflow-cuda", "CUDA 11.2.2 instead of 11.4.0"),
        (changed(cudnn={"version": "8.3.0.98"}), "tensorflow-cudnn", "cuDNN 8.1.0.77 instead of 8.3.0.98"),
        (driver("450.51.06"), "cuda-driver", "driver 470.182.03 instead of 450.51.06"),
        (driver("418.87.01"), "cuda-driver", "driver 470.182.03 instead of 418.87.01"),
        (changed(tensorflow={"pythons": ("3.11",)}), "tensorflow-python", "Python 3.8 instead of 3.11"),
        (changed(tensorflow={"version": "2.12.0"}), "tensorflow-cuda", "TensorFlow 2.9.0 instead of 2.12.0"),
        (changed(tensorflow={"version": "2.4.0"}), "tensorflow", "TensorFlow 2.9.0 instead of 2.4.0"),
        (changed(cuda={"version": "11.2.9"}), "cuda", "CUDA 11.2.2 instead of 11.2.9"),
        (changed(driver={"version": "470.199.02"}), "fabric-manager", "nvidia-fabricmanager-470 470.199.02-1"),
        (changed(container={"docker": "docker-ce", "docker_ce": None}), "container-docker", "docker: docker.io"),
    ],
)
def test_a_stack_that_does_not_fit_is_refused(stack: Stack, rule: str, works: str) -> None:
    refusals = {refusal.rule: refusal for refusal in check_stack(stack)}
    assert rule in refusals
    assert works in refusals[rule].nearest
    assert refusals[rule].source
    assert works in str(refusals[rule])
    assert refusals[rule].sentence in str(refusals[rule])


def test_the_nearest_mends_all_faults_together() -> None:
    refusals = check_stack(changed(cuda={"version": "11.4.0"}, cudnn={"version": "8.3.0.98"}))
    assert {refusal.nearest for refusal in refusals} == {
        "CUDA 11.2.2 instead of 11.4.0, cuDNN 8.1.0.77 instead of 8.3.0.98 "
        "(with TensorFlow 2.9.0, Python 3.8, driver 470.182.03)"
    }


def test_one_bad_python_among_good_ones_is_refused_once() -> None:
    (refusal, *constraints) = check_stack(changed(tensorflow={"pythons": ("3.8", "3.11")}))
    assert refusal.rule == "tensorflow-python"
    assert "3.11" in refusal.sentence
    assert {one.rule for one in constraints} == {"tensorflow-constraints"}


@pytest.mark.parametrize(
    ("constraints", "sentence"),
    [
        ("protobuf==3.19.6\n", "no exact version of numpy"),
        ("numpy==2.0.2\nprotobuf==3.19.6", "numpy 2.0.2: wheels built against numpy 1"),
        ("numpy==1.26.4 # fine\nprotobuf==4.25.0", "protobuf 4.25.0"),
        ("numpy>=1.20\nprotobuf==3.19.6", "no exact version of numpy"),
        ("numpy==1.*\nprotobuf==3.19.6", "no exact version of numpy"),
        ("-r other.txt\nNumPy==1.26.4\nprotobuf<4", "no exact version of protobuf"),
    ],
)
def test_constraints_without_which_todays_pip_breaks_the_import(constraints: str, sentence: str) -> None:
    stack = changed(tensorflow={"pythons": ("3.9",), "constraints": {"3.9": constraints}})
    (refusal,) = check_stack(stack)
    assert sentence in refusal.sentence


H100, L40S, B200, K10, K80, T4 = 0x2330, 0x26B9, 0x2901, 0x118F, 0x102D, 0x1EB8


@pytest.mark.parametrize(
    ("facts", "rules", "works"),
    [
        ({"gpus": nvidia(H100)}, ["gpu-driver", "gpu-cuda"], "driver 520.61.05 instead of 470.182.03"),
        ({"gpus": nvidia(T4, L40S)}, ["gpu-driver", "gpu-cuda"], "CUDA 11.8.0 instead of 11.2.2"),
        ({"gpus": nvidia(B200)}, ["gpu-driver", "gpu-cuda"], "on GPUs from Kepler to Ampere"),
        ({"gpus": nvidia(K10)}, ["gpu-tensorflow"], "on GPUs from Kepler to Ampere"),
        ({"kernel": "6.8.0-35-generic"}, ["driver-kernel"], "driver 470.239.06 instead of 470.182.03"),
        ({"kernel": "6.3.0"}, ["driver-kernel"], "driver 470.199.02 instead of 470.182.03"),
        ({"kernel": "6.5.0-14-generic"}, ["driver-kernel"], "driver 470.223.02 instead of 470.182.03"),
        ({"kernel": "6.18.5"}, ["driver-kernel"], "driver 580.178.04 instead of 470.182.03"),
        ({"kernel": "6.18.5", "gpus": nvidia(K80)}, ["driver-kernel"], "driver 470.182.03, on a kernel <6.3"),
        (
            {"kernel": "6.18.5", "gpus": nvidia(B200)},
            ["gpu-driver", "driver-kernel", "gpu-cuda"],
            "driver 470.182.03, on a kernel <6.3, on GPUs from Kepler to Ampere",
        ),
        (
            {"pythons": ("3.13",)},
            ["host-python"],
            "Python 3.10 in addition, a stack with an interpreter (tensorflow.interpreter), or a distribution",
        ),
        ({"version": "24.04"}, ["distribution"], "ubuntu 20.04, ubuntu 22.04, debian 11"),
        ({"distribution": "fedora", "version": "40"}, ["distribution"], "ubuntu 20.04"),
        ({"machine": "aarch64"}, ["machine"], "x86_64"),
        ({"avx": False}, ["avx"], "a processor with AVX"),
        ({"memory_bytes": 1_000_000_000}, ["memory"], "4.0 GB or more"),
        ({"free_bytes": 1_000_000_000}, ["disk"], "20.0 GB or more"),
    ],
)
def test_a_host_that_does_not_fit_is_refused(facts: dict[str, Any], rules: list[str], works: str) -> None:
    refusals = check_host(STACK, replace(GOOD, **facts))
    assert [refusal.rule for refusal in refusals] == rules
    assert all(works in refusal.nearest for refusal in refusals)
    assert all(refusal.source for refusal in refusals)


@pytest.mark.parametrize("release", ["450.80.02", "460.27.04"])
def test_older_driver_runs_binaries_and_no_ptx(release: str) -> None:
    """Minor-version compatibility: TensorFlow's wheel has compiled code for a T4, but only PTX for an A100."""
    stack, old = driver(release), replace(GOOD, kernel="5.4.0-150-generic")
    assert check_stack(stack) == []
    assert check_host(stack, replace(old, gpus=nvidia(T4))) == []
    (refusal,) = check_host(stack, replace(old, gpus=nvidia(T4, 0x20B0)))
    assert refusal.rule == "cuda-driver"
    assert "on Ampere (GA100), CUDA 11.2.2 needs driver 460.32.03 or newer" in refusal.sentence
    assert "driver 470.182.03 instead of" in refusal.nearest


@pytest.mark.parametrize("kernel", ["4.15.0-213-generic", "5.4.0-150-generic", "5.10.0-28-amd64", "6.2.16-1-pve"])
def test_kernels_that_the_driver_builds_on(kernel: str) -> None:
    assert check_host(STACK, replace(GOOD, kernel=kernel)) == []


@pytest.mark.parametrize("gpu", [0x20B0, 0x2235, 0x25B6, T4, 0x1DB4, 0x15F8, 0x1B38, 0x102D, 0x13F2, 0xFFFF])
def test_gpus_that_the_driver_drives_or_that_nobody_knows(gpu: int) -> None:
    assert check_host(STACK, replace(GOOD, gpus=nvidia(gpu))) == []


def test_the_stack_states_the_kernels_of_its_own_driver() -> None:
    anywhere = changed(driver={"kernels": ">=4"})
    assert check_host(anywhere, replace(GOOD, kernel="6.18.5")) == []
    by_table = changed(driver={"kernels": None})
    (refusal,) = check_host(by_table, replace(GOOD, kernel="6.8.0"))
    assert "LP #2019979" in refusal.source


def test_a_host_without_any_python_is_left_to_the_role() -> None:
    assert check_host(STACK, replace(GOOD, pythons=())) == []


def test_the_house_combination_and_every_suggestion_break_no_rule() -> None:
    assert list(misfits(ALL_RULES, HOUSE)) == []
    strange = dict(tensorflow="2.9.0", python="3.11", cuda="11.4.0", cudnn="8.3.0.98", driver="450.51.06")
    said = nearest_fit(RULES, strange, {})
    assert said == (
        "Python 3.8 instead of 3.11, CUDA 11.2.2 instead of 11.4.0, cuDNN 8.1.0.77 instead of 8.3.0.98, "
        "driver 470.182.03 instead of 450.51.06 (with TensorFlow 2.9.0)"
    )
    assert nearest_fit(RULES, HOUSE, {}) == (
        "TensorFlow 2.9.0, Python 3.8, CUDA 11.2.2, cuDNN 8.1.0.77, driver 470.182.03, TensorRT 7.2.3.4, NCCL 2.8.4"
    )


def test_the_tables_agree_with_each_other() -> None:
    series = {".".join(one.split(".")[:2]) for one in DRIVER_FLOORS}
    assert {row.cuda for row in TENSORFLOWS} <= series | set(PTX_FLOORS)
    assert {row.cudnn for row in TENSORFLOWS if row.cuda in series and row.series < "2.14"} == {
        ".".join(one.split(".")[:2]) for one in CUDNNS
    }
    releases = [version(row.version) for row in DRIVERS]
    assert releases == sorted(releases)
    assert all(gpus_of(row.version) for row in DRIVERS)
    assert all(one.last < other.first for one, other in pairwise(CHIPS))


@pytest.mark.parametrize(
    ("device", "name", "architecture"),
    [
        (0x102D, "GK210", Architecture.KEPLER),
        (0x1DB6, "GV100", Architecture.VOLTA),
        (0x20B2, "GA100", Architecture.AMPERE),
        (0x20B7, "GA100", Architecture.AMPERE),
        (0x2236, "GA102", Architecture.AMPERE),
        (0x27B8, "AD104", Architecture.ADA),
        (0x2331, "GH100", Architecture.HOPPER),
        (0x2B85, "GB202", Architecture.BLACKWELL),
    ],
)
def test_pci_ids(device: int, name: str, architecture: Architecture) -> None:
    found = chip(device)
    assert found is not None
    assert (found.name, found.architecture) == (name, architecture)


def test_a_device_that_no_row_knows() -> None:
    assert chip(0x1AF1) is None  # an NVSwitch


def test_kernel_versions_are_read_from_uname() -> None:
    assert str(kernel_version("5.15.0-91-generic")) == "5.15.0"
    assert str(kernel_version("6.1-rt")) == "6.1"
    assert kernel_version("unknown") is None


def brings(python: str) -> Stack:
    """The stack with its own interpreter."""
    return changed(tensorflow={"interpreter": Interpreter(python=python, artifact="interpreter")})


def test_a_host_without_a_python_that_fits_can_have_a_stack_that_brings_one() -> None:
    host = replace(GOOD, pythons=("3.11",))
    assert [refusal.rule for refusal in check_host(STACK, host)] == ["host-python"]
    assert check_host(brings("3.9"), host) == []
    assert check_stack(brings("3.9")) == []


@pytest.mark.parametrize("python", ["3.6", "3.11", "3.13"])
def test_an_interpreter_that_tensorflow_has_no_wheel_for_is_refused_with_its_stack(python: str) -> None:
    refusals = check_stack(brings(python))
    assert "tensorflow-python" in [refusal.rule for refusal in refusals]
    assert any(f"no wheel for Python {python}" in refusal.sentence for refusal in refusals)
    assert any(f"Python 3.8 instead of {python}" in refusal.nearest for refusal in refusals)
