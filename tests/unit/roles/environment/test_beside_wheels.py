"""A login file of a previous stack is removed for CUDA wheels; files of others are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.plan.roles.role import RoleContext, discover
from hostwright.standard.roles.environment.beside_wheels import NoToolkitAtLogin
from tests.unit.support.shell import run
from tests.unit.support.stacks import load_stack

ROLES = {role.name: role for role in discover()}
NINE = load_stack("tensorflow-2.9")
TEXT = RoleContext(NINE).render(
    "environment/cuda.sh.j2", libraries=("/usr/local/cuda-11.2/lib64",), prefix="/usr/local/cuda-11.2", series="11.2",
    compiler="",
)  # fmt: skip


def planned(state: NoToolkitAtLogin, text: str) -> Change | None:
    (probe,) = state.probes()
    return state.plan(Facts({probe: Answer(0 if text else 1, "".join(text.splitlines(keepends=True)[:1]))}))


@pytest.mark.parametrize("role", ["jax", "pytorch", "tensorflow"])
def test_environments_with_libraries_of_cuda_have_the_state_and_others_have_not(role: str) -> None:
    stacks = {"jax": "jax-0.12", "pytorch": "pytorch-2.14", "tensorflow": "tensorflow-2.21"}
    stack, kind = load_stack(stacks[role]), ROLES[role]
    assert NoToolkitAtLogin() in kind.resources(kind.variables(), RoleContext(stack))
    nine = ROLES["tensorflow"]
    assert NoToolkitAtLogin() not in nine.resources(nine.variables(), RoleContext(NINE))


def test_our_file_goes_and_names_what_it_did(tmp_path: Path) -> None:
    file = tmp_path / "cuda.sh"
    file.write_text(TEXT)
    change = planned(NoToolkitAtLogin(str(file)), TEXT)
    assert change
    assert change.have == "puts CUDA 11.2 before the libraries of wheels"
    for step in change.steps:
        run(step.script)
    assert not file.exists()


@pytest.mark.parametrize(
    "text",
    ["", "export LD_LIBRARY_PATH=/usr/local/cuda/lib64\n", "# CUDA 11.2 for login shells, by hand\n", "\n" + TEXT],
)
def test_a_file_of_others_stays(text: str) -> None:
    assert planned(NoToolkitAtLogin(), text) is None
