"""Compares the rules with real cases: facts and outcomes from public threads.

Facts missing in a thread are those of an ordinary host. The first thirty cases were collected before any rule was
tested; of the unused half, the rules decided 13 of 15 correctly, and the other two were added to the tables. The last
nine were collected afterwards for rules without a thread: one was decided wrong, which led to JAX's rule about AVX.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from hostwright.plan.roles.role import discover, rules_of
from hostwright.stack import rules
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack
from hostwright.standard.roles.cuda.rules import newest_gcc
from hostwright.standard.roles.driver.section import DriverSection
from tests.unit.support.planned import HOSTS
from tests.unit.support.stacks import load_stack, with_values

ROLES = {role.name: role for role in discover()}
FRAMEWORKS = {"torch": "pytorch", "jax": "jax", "tensorflow": "tensorflow"}
JAMMY, NOBLE, RESOLUTE, BIONIC = (("ubuntu", release) for release in ("22.04", "24.04", "26.04", "18.04"))
#: further pins of an environment with CUDA 11, 12 or 13
WHEELS = {major: f"nvidia-cudnn-cu{major}==9.9.9\n" for major in (11, 12, 13)}


@dataclass(frozen=True)
class Case:
    """A host, and the rule that rejects it; an empty ``rule``: the thread's combination works."""

    source: str
    rule: str = ""
    driver: str = "580.159.04"
    module: str = "auto"
    fabric_manager: str = ""
    gpu: int = 0x20B0
    kernel: str = ""
    system: tuple[str, str] = JAMMY
    python: str = "3.12"
    versions: dict[str, str] = field(default_factory=dict)  #: ``torch``, ``jax``, ``tensorflow`` or ``cuda`` → version
    wheels: str = ""  #: pins besides the framework; empty: the constraints of ``stack``
    roles: tuple[str, ...] = ()  #: in addition to those of ``versions``
    avx: bool = True
    cards: int = 1
    stack: str = "pytorch-2.14"


CASES = [
    # last driver branches: R580 for GTX 1050, R470 for GT 710
    Case("NixOS/nixos-hardware#1828", "gpu-driver", "595.58.03", gpu=0x1C8D),
    Case("siderolabs/talos#8764", "gpu-driver", "535.129.03", gpu=0x128B),
    # the open module needs a GSP, which Pascal lacks; Blackwell and GB10 need the open module
    Case("zzzhouuu/truenas-nvidia-drivers#20", "gpu-module", "580.178.04", "open", gpu=0x1BB3, kernel="6.12.105"),
    Case("negativo17/nvidia-driver#158", "gpu-module", "560.31.02", "open", gpu=0x1D01),
    Case("NVIDIA/open-gpu-kernel-modules#872", "gpu-module", "570.133.07", "proprietary", gpu=0x2C58),
    Case("Start9Labs/start-technologies#3693", "gpu-module", "580.173.02", "proprietary", gpu=0x2E12),
    # the module does not build
    Case("pop-os/linux#350", "driver-kernel", "565.77", kernel="6.13.6-76061306-generic"),
    Case("damentz/liquorix-package#185", "driver-kernel", "560.35.03", kernel="6.12.1-1-liquorix-amd64"),
    Case("xanmod/linux#412", "driver-kernel", "545.23.08", kernel="6.1.76-x64v4-xanmod1"),
    Case("NVIDIA/open-gpu-kernel-modules#501", "driver-kernel", "530.41.03", kernel="6.4.0-rc1"),
    Case("linux-surface/linux-surface#1884", "driver-kernel", "550.163.01", kernel="6.17.1-surface-2"),
    # Fabric Manager of another release, including the same branch
    Case("NVIDIA/gpu-driver-container#735", "fabric-manager", "580.126.09", fabric_manager="590.48.01-1", gpu=0x2335),
    Case("canonical/microk8s#2119", "fabric-manager", "460.73.01", fabric_manager="460.91.03-1", kernel="5.4.0-80"),
    # compiled code for the card in the wheel
    Case(
        "bnsreenu/digitalsreeni-image-annotator#57", "gpu-pytorch", "550.163.01", gpu=0x1C81, system=NOBLE,
        versions={"torch": "2.8.0"}, wheels=WHEELS[12],
    ),
    Case("FlashML-org/FreeToken#253", "", "570.211.01", gpu=0x1DB4, versions={"torch": "2.10.0"}, wheels=WHEELS[12]),
    Case("unslothai/unsloth#5876", "", "580.65.06", gpu=0x1EB8, versions={"torch": "2.11.0"}, wheels=WHEELS[13]),
    Case("remsky/Kokoro-FastAPI#306", "gpu-pytorch", "570.133.07", gpu=0x2D04, python="3.10", versions={"torch": "2.6.0"}, wheels=WHEELS[12]),  # noqa: E501
    Case(
        "TaterTotterson/microWakeWord-Trainer-Nvidia-Docker#56", "", "580.105.08", "open", gpu=0x2D04,
        kernel="6.8.0-88-generic", versions={"torch": "2.8.0"}, wheels=WHEELS[12],
    ),
    Case("NVIDIA-Digital-Bio/Proteina-Complexa#59", "gpu-jax", "570.211.01", gpu=0x2901, python="3.10", versions={"jax": "0.4.29"}, wheels=WHEELS[12], stack="jax-0.12"),  # noqa: E501
    Case("3587jjh/HuRo#3", "", "550.163.01", gpu=0x20B2, python="3.11", versions={"jax": "0.6.2"}, wheels=WHEELS[12], stack="jax-0.12"),  # noqa: E501
    Case("NVlabs/sionna#1044", "gpu-tensorflow", "580.95.05", gpu=0x2D05, system=NOBLE, versions={"tensorflow": "2.19.1"}, wheels=WHEELS[12], stack="tensorflow-2.21"),  # noqa: E501
    Case("JuliaGPU/CUDA.jl#3079", "gpu-cuda", "580.126.09", gpu=0x1DB6, system=NOBLE, versions={"cuda": "13.0.2"}, stack="tensorflow-2.9"),  # noqa: E501
    # a driver older than the wheel's CUDA requires
    Case("eullm/eullm#428", "wheels-driver", "535.54.03", versions={"torch": "2.11.0"}, wheels=WHEELS[13]),
    # Pythons
    Case("tensorflow/tensorflow#61873", "tensorflow-python", "525.105.17", gpu=0x1EB8, python="3.7", versions={"tensorflow": "2.12.0"}, wheels=WHEELS[11], stack="tensorflow-2.21"),  # noqa: E501
    Case("tensorflow/tensorflow#79349", "tensorflow-python", "560.35.05", gpu=0x1EB8, python="3.13", versions={"tensorflow": "2.18.0"}, wheels=WHEELS[12], stack="tensorflow-2.21"),  # noqa: E501
    Case("flatironinstitute/jaxmg#33", "jax-python", python="3.11", versions={"jax": "0.11.0"}, wheels=WHEELS[12], stack="jax-0.12"),  # noqa: E501
    # the C library
    Case("pytorch/pytorch#156215", "glibc", "535.309.01", python="3.11", system=BIONIC, kernel="5.4.0-150-generic", versions={"torch": "2.7.1"}, stack="volta-pascal"),  # noqa: E501
    # Ubuntu 26.04 with R595, its Python and CUDA 13.2
    Case(
        "bytedeco/javacpp-presets#1758", "", "595.71.05", "open", gpu=0x2860, kernel="7.0.0-14-generic",
        system=RESOLUTE, python="3.14", versions={"torch": "2.15.0"}, wheels=WHEELS[13],
    ),
    # the system's CUDA found before the environment's
    Case(
        "tensorflow/tensorflow#60750", "cuda-path", "520.61.05", gpu=0x1EB8, python="3.10", stack="tensorflow-2.12",
        versions={"tensorflow": "2.12.0"}, wheels=WHEELS[11], roles=("cuda", "cudnn", "environment"),
    ),
    # --- threads for rules that had none
    Case("tensorflow/tensorflow#62342", "avx", versions={"tensorflow": "2.12.0"}, wheels=WHEELS[11], stack="tensorflow-2.21", python="3.10", avx=False),  # noqa: E501
    Case("jax-ml/jax#31723", "avx", versions={"jax": "0.7.2"}, wheels=WHEELS[13], stack="jax-0.12", python="3.13", avx=False),  # noqa: E501
    Case("tensorflow/tensorflow#58910", "tensorflow-cuda", "525.60.13", gpu=0x1F08, python="3.10", versions={"tensorflow": "2.11.0", "cuda": "12.0.0"}, stack="tensorflow-2.11"),  # noqa: E501
    Case("tensorflow/tensorflow#70444", "tensorflow-cuda", "550.54.15", gpu=0x28A1, python="3.10", versions={"tensorflow": "2.12.0", "cuda": "12.4.1"}, stack="tensorflow-2.12"),  # noqa: E501
    Case("tensorflow/tensorflow#60913", "tensorflow-cudnn", "525.60.13", python="3.10", versions={"tensorflow": "2.12.0", "cuda": "11.8.0", "cudnn": "8.5.0.96"}, stack="tensorflow-2.12"),  # noqa: E501
    Case("tensorflow/tensorflow#57679", "tensorrt-tensorflow", "525.60.13", python="3.10", versions={"tensorflow": "2.10.0", "tensorrt": "8.4.3.1"}, roles=("cuda",), stack="tensorflow-2.9-nccl-tensorrt"),  # noqa: E501
    Case("cirruslabs/linux-image-templates#64", "cuda-driver", "570.158.01", gpu=0x1EB8, versions={"cuda": "13.0.0"}, stack="tensorflow-2.9"),  # noqa: E501
    Case("cedarconnor/SPAG4d#1", "pytorch-python", python="3.13", versions={"torch": "2.5.1"}, wheels=WHEELS[12]),
    Case("siderolabs/extensions#717", "subnet-manager", "570.158.01", gpu=0x2901, cards=8, fabric_manager="570.158.01-1"),  # noqa: E501
    # --- further threads, about the same rules
    Case("runs-on/runner-images-for-aws#55", "gpu-module", "580.105.08", "proprietary", gpu=0x2BB5),
    Case("metal-stack/metal-images#399", "gpu-module", "580.126.09", "proprietary", gpu=0x2BB5),
    Case("pop-os/pop#3811", "driver-kernel", "580.119.02", kernel="6.17.9-76061709-generic"),
    Case("NVIDIA/open-gpu-kernel-modules#951", "driver-kernel", "580.105.08", kernel="6.18.0"),
    Case("Frogging-Family/linux-tkg#1186", "driver-kernel", "590.48.01", kernel="6.19.0"),
    Case("void-linux/void-packages#61087", "driver-kernel", "580.142", kernel="7.1.0"),
    Case("void-linux/void-packages#61087, fixed", "", "580.159.04", kernel="7.1.0"),
    Case("NVIDIA/open-gpu-kernel-modules#1143", "driver-kernel", "550.163.01", kernel="6.17.2-1-pve"),
    Case("pytorch/pytorch#162531", "wheels-driver", "570.211.01", versions={"torch": "2.11.0"}, wheels=WHEELS[13]),
    Case("pytorch/pytorch#190385", "gpu-pytorch", gpu=0x1DB4, versions={"torch": "2.14.1"}, wheels=WHEELS[13]),
    Case("Comfy-Org/ComfyUI#16438", "gpu-pytorch", gpu=0x2B85, versions={"torch": "2.7.1"}, wheels=WHEELS[12]),
    Case("tensorflow/tensorflow#89272", "gpu-tensorflow", gpu=0x2B85, versions={"tensorflow": "2.20.0"}, wheels=WHEELS[12], stack="tensorflow-2.21"),  # noqa: E501
    Case("tensorflow/tensorflow#117538", "cuda-wheels-mixed", versions={"torch": "2.14.1"}, wheels=WHEELS[12] + WHEELS[13]),  # noqa: E501
    Case("pytorch/pytorch#152783", "cuda-path", versions={"torch": "2.8.0"}, wheels=WHEELS[12], roles=("cuda", "cudnn", "environment")),  # noqa: E501
]  # fmt: skip


def stack_of(case: Case) -> Stack:
    """A custom stack with the versions of the thread, for its distribution."""
    stack = load_stack(case.stack)
    if "environment" in case.roles and "cuda" not in stack.sections:
        stack = stack.model_copy(update={"sections": {**load_stack("tensorflow-2.9").sections, **stack.sections}})
    values: dict[str, dict[str, Any]] = {}
    manager = None
    if case.fabric_manager:
        driver = stack.sections["driver"]
        assert isinstance(driver, DriverSection)
        assert driver.fabric_manager
        manager = driver.fabric_manager.model_copy(update={"version": case.fabric_manager})
    values["driver"] = {"version": case.driver, "module": case.module, "kernels": None, "fabric_manager": manager}
    for package, version in case.versions.items():
        own: dict[str, Any] = {"version": version}
        if role := FRAMEWORKS.get(package):
            own |= {"pythons": (case.python,), "interpreter": None}
        if case.wheels:
            pins = f"{package}=={version}\nnumpy==1.23.5\nprotobuf==3.20.3\n{case.wheels}"
            own["constraints"] = {case.python: pins}
        values[role or package] = own
    return with_values(stack, **values).model_copy(update={"distributions": {case.system[0]: (case.system[1],)}})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.source)
def test_the_rules_say_what_really_happened(case: Case) -> None:
    stack = stack_of(case)
    own = [*case.roles, *(FRAMEWORKS.get(package, package) for package in case.versions)]
    judges = rules_of(ROLES[name] for name in ("base", "driver", *own))
    kernel = case.kernel or HOSTS[case.system][0]
    facts = HostFacts(
        *case.system, kernel, "x86_64", ((0x10DE, case.gpu),) * case.cards, case.avx, (case.python,),
        memory_bytes=10**12, free_bytes=10**12,
    )  # fmt: skip
    found = {
        one.rule: one.sentence for one in (*rules.check_stack(stack, judges), *rules.check_host(stack, facts, judges))
    }
    assert case.rule in found if case.rule else not found, found


def test_a_compiler_that_is_too_new_is_known() -> None:
    """NVlabs/instant-ngp#1562: gcc 13 and CUDA 12.1."""
    assert newest_gcc("12.1.1") == 12
