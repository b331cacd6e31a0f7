"""Proof (test on a host) of NCCL: correct sums over all GPUs, speed, and transport."""

from __future__ import annotations

from hostwright.proofs import Expected, Measurements, Program, Proof, ProofFinding
from hostwright.roles import RoleContext
from hostwright.standard.roles.base.proofs.sources import source
from hostwright.standard.roles.cuda import proofs as cuda
from hostwright.standard.roles.cuda.proofs.judges import missing, not_zero
from hostwright.standard.roles.nccl import Nccl

#: NCCL transport that is slower than direct GPU transfers → phrase in a finding
AROUND = {"host memory": "through the host's memory", "network": "over the network"}


def proofs(_variables: Nccl, ctx: RoleContext) -> tuple[Proof, ...]:
    """Return the proof that runs one all-reduce over all GPUs, as nccl-tests does."""
    compiler = cuda.compiler(ctx, libraries="-lnccl")
    program = Program("allreduce.cu", source(__file__, "allreduce.cu", cuda.__file__), compiler=compiler)
    return (Proof("allreduce", "nccl", program, judge, "full", 300),)


def judge(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Check that all GPUs took part and have the right sums. An indirect transport is a note."""
    ways = tuple(
        ProofFinding(
            f"NCCL does not use a direct path between cards: it moves data {AROUND[str(one.value)]}",
            one.device,
            "note",
            str(one.value),
        )
        for one in measured.named("way")
        if one.value in AROUND
    )
    wrong = not_zero(measured, "wrong sums", "NCCL's sums over the cards are wrong")
    return (*missing(measured, expected), *wrong, *ways)
