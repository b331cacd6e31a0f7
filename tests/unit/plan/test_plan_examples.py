"""Runs the examples in docstrings of plans, roles and stacks."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from hostwright.plan import model, planning, state_identity
from hostwright.plan.host import hostfacts
from hostwright.plan.roles import role
from hostwright.stack import stack, versions


@pytest.mark.parametrize(
    "module", [model, planning, hostfacts, state_identity, role, stack, versions], ids=lambda module: module.__name__
)
def test_the_examples_of_a_module_run(module: ModuleType) -> None:
    ran = doctest.testmod(module)
    assert (ran.failed, ran.attempted > 0) == (0, True)
