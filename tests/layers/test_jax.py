"""JAX as a user runs it: imported in a login shell by the environment's own Python, computed with, asked for GPUs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hostwright.standard.roles.cuda.wheels import LOGIN_SHELL, OPENED, opened_elsewhere
from hostwright.standard.roles.driver.states.gpu_use import has_cards
from hostwright.standard.roles.jax.section import JaxSection
from hostwright.verify.pip_check import PIP_CHECK

LOOK = (
    r"""
import json, platform
import jax, jaxlib, numpy
try:
    cards = len(jax.devices("gpu"))
except RuntimeError as error:
    cards, why = 0, str(error)
else:
    why = ""
with jax.default_device(jax.devices("cpu")[0]):
    total = float(jax.jit(lambda x: (x * x).sum())(numpy.arange(10.0)))
"""
    + OPENED
    + r"""
print(json.dumps({
    "python": ".".join(platform.python_version_tuple()[:2]), "jax": jax.__version__, "jaxlib": jaxlib.__version__,
    "numpy": numpy.__version__, "cards": cards, "why": why, "total": total, **opened,
}))
"""
)


@pytest.fixture(scope="module")
def look(host, stack, variables) -> dict[str, Any]:
    done = host.run(LOGIN_SHELL, f"{stack.section(JaxSection).home(variables.path)}/bin/python", LOOK)
    assert done.rc == 0, f"JAX does not run: {' '.join(done.stderr.split(chr(10))[-3:]).strip()}"
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def test_it_imports_at_the_pinned_versions(look, stack):
    """JAX, jaxlib and NumPy import, each at the version that the stack pins for this Python."""
    pins = stack.section(JaxSection).pins(look["python"])
    have = {name: look[name] for name in ("jax", "jaxlib", "numpy")}
    assert have == {name: pins[name] for name in have}, f"{have}"


def test_it_compiles_and_computes(look):
    """A compiled function gives the right sum on the CPU."""
    assert look["total"] == 285.0, f"the sum of the squares is {look['total']}, not 285"


def test_its_cuda_libraries_are_its_own(look):
    """In a login shell it opens the CUDA libraries of its own wheels, and no copy of another place."""
    assert not opened_elsewhere(look), f"opened instead of the wheels' own: {', '.join(opened_elsewhere(look))}"


@pytest.mark.beside
def test_its_packages_agree(host, stack, variables):
    """Every installed package finds those that it needs (pip check)."""
    done = host.run("%s -c %s", f"{stack.section(JaxSection).home(variables.path)}/bin/python", PIP_CHECK)
    assert done.rc == 0, done.stdout.strip() or done.stderr.strip()


def test_it_lists_every_card(look, bounded_run, root_once, no_gpu):
    """JAX lists as many GPUs as the driver has cards."""
    if not has_cards(root_once):
        no_gpu()
    listed = bounded_run("nvidia-smi -L")
    cards = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    assert listed.rc == 0, f"nvidia-smi fails, so this cannot hold: {listed.stdout.strip() or listed.stderr.strip()}"
    assert look["cards"] == cards > 0, f"JAX lists {look['cards']} of {cards} cards: {look['why'][:200]}"
