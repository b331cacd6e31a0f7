"""The quick proofs of the standard roles that such a machine can run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from hostwright.proofs import Proof
from hostwright.roles import RoleContext
from hostwright.standard.roles.base import Base
from hostwright.standard.roles.base.proofs import proofs as of_base
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.proofs import proofs as of_cuda
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.proofs import proofs as of_driver

from . import Borrowed


def proofs(v: Borrowed, ctx: RoleContext) -> tuple[Proof, ...]:
    """Those of the processors, the memory, the cards' places and, with nvcc, of the cards."""
    toolkit = SimpleNamespace(section=lambda _kind: SimpleNamespace(prefix=v.toolkit, compiler=""))
    of_cards = of_cuda(Cuda(), toolkit) if v.toolkit else ()
    found = (*of_base(Base(), ctx), *of_driver(Driver(), ctx), *of_cards)
    quick = (proof for proof in found if proof.level == "quick" and proof.hosts == 1)
    return tuple(replace(proof, time_limit_s=min(proof.time_limit_s, v.limit_s)) for proof in quick)
