"""Tests of the frameworks' checks of cards and CUDA libraries: no result without a card, and shadowing libraries are
named.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

import pytest
from testinfra.backend.base import CommandResult

from hostwright.plan.desired import Desired
from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Refusal
from hostwright.plan.planning import make_plan
from hostwright.standard.roles.tensorflow.look import LOOK as LOOK_AT_TENSORFLOW
from hostwright.verify.layer_checks import NoGpu
from tests.layers import test_jax, test_pytorch, test_tensorflow
from tests.unit.support.planned import bare_facts
from tests.unit.support.stacks import load_stack
from tests.unit.support.standard import targets

LOOK = {"cards": 0, "why": ""}
FRAMEWORKS = [test_pytorch, test_jax, test_tensorflow]


def no_gpu() -> NoReturn:
    raise NoGpu("no GPU in this host")


def check(module: ModuleType, bus: str) -> None:
    def root_run(script: str, *_: Any) -> CommandResult:
        return CommandResult(None, 0, script, bus if script == PCI.script else "", "")

    def smi(command: str, *_: Any) -> CommandResult:
        return CommandResult(None, 127, command, "", "nvidia-smi: not found")

    module.test_it_lists_every_card(LOOK, smi, root_run, no_gpu)


@pytest.mark.parametrize("module", FRAMEWORKS, ids=lambda module: module.__name__)
def test_a_check_that_needs_a_card_has_no_outcome_without_one(module: ModuleType) -> None:
    with pytest.raises(NoGpu):
        check(module, "0x8086 0x030000 0x1912\n")
    with pytest.raises(AssertionError, match=r"nvidia-smi fails, so this cannot hold: nvidia-smi: not found"):
        check(module, "0x10de 0x030200 0x2330\n")


@pytest.mark.parametrize("module", FRAMEWORKS, ids=lambda module: module.__name__)
def test_a_library_that_shadows_a_wheels_is_named_in_a_login_shell(module: ModuleType) -> None:
    """A line in a shell's start file, or a module that it loads, puts another CUDA first."""
    theirs = "/usr/local/cuda-12.4/lib64/libcublas.so.12"
    seen = {"prefix": "/opt/ours", "opened": ["/opt/ours/lib/libcudnn.so.9", "/usr/lib/libcuda.so.1"]}
    stacks = {"stack": load_stack("tensorflow-2.21")} if module is test_tensorflow else {}
    module.test_its_cuda_libraries_are_its_own(seen, **stacks)
    with pytest.raises(AssertionError, match=f"opened instead of the wheels' own: {theirs}"):
        module.test_its_cuda_libraries_are_its_own({**seen, "opened": [*seen["opened"], theirs]}, **stacks)
    compile(getattr(module, "LOOK", LOOK_AT_TENSORFLOW), "look", "exec")


def test_the_driver_alone_refuses_a_host_without_a_card() -> None:
    """``hostwright_roles: [base, pytorch]`` is the setting of a login node."""
    (target,) = (one for one in targets() if one.name == "pytorch-2.14")
    plan = make_plan(target.desired, bare_facts(target, "debian", "12", ()))
    refusals = {role.role: one.rule for role in plan.roles for one in role.changes if isinstance(one, Refusal)}
    assert refusals == {"driver": "gpu-present"}
    roles = tuple(role for role in target.desired.roles if role.name in ("base", "pytorch"))
    login = Desired("login01", target.stack, roles)
    planned = make_plan(login, bare_facts(target, "debian", "12", ()))
    assert [role.role for role in planned.roles] == ["base", "pytorch"]
