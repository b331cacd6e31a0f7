"""The proofs of the standard roles that such a machine can run, the longest left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

from hostwright.proofs import Proof
from hostwright.resources import EnvironmentVariables
from hostwright.roles import RoleContext
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.base.proofs import proofs as of_base
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.proofs import proofs as of_cuda
from hostwright.standard.roles.cuda.proofs.frameworks import DevicesJudge
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.proofs import proofs as of_driver
from hostwright.standard.roles.pytorch.proofs import proofs as of_pytorch

from . import Borrowed


def proofs(v: Borrowed, ctx: RoleContext) -> tuple[Proof, ...]:
    """The quick ones of host and driver, with nvcc those of the cards, and all of the PyTorch that is there."""
    toolkit = SimpleNamespace(section=lambda _kind: SimpleNamespace(prefix=v.toolkit, compiler=""))
    of_cards = of_cuda(Cuda(), toolkit) if v.toolkit else ()
    quick = (proof for proof in (*of_base(Base(), ctx), *of_driver(Driver(), ctx), *of_cards) if proof.level == "quick")
    found = (*quick, *(_of_torch(v, ctx) if v.python else ()))
    return tuple(replace(proof, time_limit_s=min(proof.time_limit_s, v.limit_s)) for proof in found if proof.hosts == 1)


def _of_torch(v: Borrowed, ctx: RoleContext) -> Iterator[Proof]:
    """With the Python that is there, whichever version of PyTorch that has."""
    any_version = DevicesJudge("PyTorch", {}).judge
    for proof in of_pytorch(EnvironmentVariables(), ctx):
        program = replace(proof.program, interpreter=(v.python,))
        yield replace(proof, program=program, judge=any_version if proof.name == "devices" else proof.judge)
