"""PyTorch as a user runs it: imported in a login shell by its own Python, computed with, asked for GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostwright.standard.roles.cuda.wheels import LOGIN_SHELL, OPENED, opened_elsewhere
from hostwright.standard.roles.driver.states.gpu_use import has_cards
from hostwright.standard.roles.pytorch.section import PytorchSection
from hostwright.verify.pip_check import PIP_CHECK

#: One process, since the import takes seconds. It prints last which files of CUDA's it has opened.
LOOK = (
    r"""
import json, platform
import numpy, torch
generator = torch.Generator().manual_seed(1)
a = torch.rand(64, 64, generator=generator)
product = float((a @ torch.linalg.inv(a)).diagonal().mean())
cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
"""
    + OPENED
    + r"""
print(json.dumps({
    "python": ".".join(platform.python_version_tuple()[:2]), "torch": torch.__version__.partition("+")[0],
    "numpy": numpy.__version__, "cuda": torch.version.cuda, "product": product, "cards": cards,
    "code": torch._C._cuda_getArchFlags() or "", **opened,
}))
"""
)


@pytest.fixture(scope="module")
def look(host, stack, variables) -> dict[str, Any]:
    python = f"{stack.section(PytorchSection).home(variables.path)}/bin/python"
    done = host.run(LOGIN_SHELL, python, LOOK)
    assert done.rc == 0, f"PyTorch does not run: {' '.join(done.stderr.split(chr(10))[-3:]).strip()}"
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def test_it_imports_at_the_pinned_versions(look, stack):
    """PyTorch and NumPy import, each at the version that the stack pins for this Python."""
    pins = stack.section(PytorchSection).pins(look["python"])
    have = {name: look[name] for name in ("torch", "numpy")}
    assert have == {name: pins[name] for name in have}, f"{have}"


def test_it_computes(look):
    """A matrix times its inverse is the unit matrix."""
    assert abs(look["product"] - 1) < 0.01, f"the mean of the diagonal is {look['product']}"


def test_its_cuda_libraries_are_its_own(look):
    """In a login shell it opens the CUDA libraries of its own wheels, and no copy of another place."""
    assert not opened_elsewhere(look), f"opened instead of the wheels' own: {', '.join(opened_elsewhere(look))}"


def test_it_is_built_with_cuda(look):
    """It is built with CUDA, and has code for GPUs."""
    assert look["cuda"], "this is a CPU build"
    assert "sm_" in look["code"], "it has no code for any GPU"


@pytest.mark.beside
def test_its_packages_agree(host, stack, variables):
    """Every installed package finds those that it needs (pip check)."""
    done = host.run("%s -c %s", f"{stack.section(PytorchSection).home(variables.path)}/bin/python", PIP_CHECK)
    assert done.rc == 0, done.stdout.strip() or done.stderr.strip()


def test_a_compiler_and_pythons_headers_are_there(host, stack, variables):
    """``torch.compile`` finds a C compiler and Python.h, without which Triton cannot start a kernel."""
    python = f"{stack.section(PytorchSection).home(variables.path)}/bin/python"
    header = "import sysconfig; print(sysconfig.get_path('include') + '/Python.h')"
    done = host.run('gcc -E -x c -include "$(%s -c %s)" /dev/null > /dev/null', python, header)
    assert done.rc == 0, done.stderr.strip().splitlines()[-1:]


def test_it_lists_every_card(look, bounded_run, root_once, no_gpu):
    """PyTorch lists as many GPUs as the driver has cards."""
    if not has_cards(root_once):
        no_gpu()
    listed = bounded_run("nvidia-smi -L")
    cards = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    assert listed.rc == 0, f"nvidia-smi fails, so this cannot hold: {listed.stdout.strip() or listed.stderr.strip()}"
    assert look["cards"] == cards > 0, f"PyTorch lists {look['cards']} of {cards} cards"
