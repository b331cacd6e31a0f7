"""Parsing of shells' output for verify: start files may print text before and after the answer."""

from __future__ import annotations

import pytest
from testinfra.backend.base import CommandResult

from hostwright.standard.roles.cuda.section import CudaSection
from tests.layers.test_environment import answer, check
from tests.unit.support.stacks import load_stack

STACK = load_stack("tensorflow-2.9")
CUDA = STACK.section(CudaSection)
TOOL = f"{CUDA.prefix}/bin/nvcc"
NAMES = ("libcudart.so.11.0",)
OURS = f"{CUDA.prefix}/targets/x86_64-linux/lib/libcudart.so.11.2.152"
THEIRS = "/opt/miniconda3/lib/libcudart.so.11.0"


def printed(*, nvcc: str = TOOL, library: str = OURS, before: str = "", after: str = "") -> CommandResult:
    text = f"{before}\nhostwright: begin\nnvcc {nvcc}\n{CUDA.nvcc}\nworks\n{library}\n\nhostwright: end\n{after}"
    return CommandResult(None, 0, "", text, "bash: X: unbound variable")


@pytest.mark.parametrize("noise", ["\x1b[1m", "Welcome\n", "nvcc /somebody/elses/nvcc\n", "\x1b]0;title\x07", "\n\n"])
def test_what_start_files_print_is_no_answer(noise: str) -> None:
    check(printed(before=noise, after=noise), NAMES, STACK, tool=TOOL)


def test_a_shell_that_does_not_run_the_command_is_told_with_its_words() -> None:
    with pytest.raises(AssertionError, match=r"did not run the command; it printed: .*unbound variable"):
        answer(CommandResult(None, 1, "", "\x1b[1mHello\n", "bash: X: unbound variable"))


def test_the_library_that_wins_is_told_and_where_it_is_set() -> None:
    def winner(variable: str, directory: str) -> str:
        return f"; /etc/profile.d/miniconda.sh:1: {variable}={directory}"

    with pytest.raises(AssertionError) as failure:
        check(printed(library=THEIRS), NAMES, STACK, winner=winner)
    assert f"libcudart.so.11.0 (it is {THEIRS}); /etc/profile.d/miniconda.sh:1: LD_LIBRARY_PATH=" in str(failure.value)
    with pytest.raises(AssertionError, match=r"nvcc is /usr/bin/nvcc, not .*sh:1: PATH=/usr/bin"):
        check(printed(nvcc="/usr/bin/nvcc"), NAMES, STACK, tool=TOOL, winner=winner)
