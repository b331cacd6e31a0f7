"""What is proved of NCCL: that all cards of the host add up rightly together, how fast, and by which way."""

from __future__ import annotations

from hostwright.proofs import Expected, Measurements, Program, Proof, ProofFinding
from hostwright.roles import RoleContext
from hostwright.standard.roles.base.proofs.sources import source
from hostwright.standard.roles.cuda import proofs as cuda
from hostwright.standard.roles.cuda.proofs.judges import missing, not_zero
from hostwright.standard.roles.nccl import Nccl

#: what of NCCL's ways is slower than from card to card
AROUND = {"host memory": "through the host's memory", "network": "over the network"}


def proofs(_variables: Nccl, ctx: RoleContext) -> tuple[Proof, ...]:
    """One all-reduce over all cards, as nccl-tests has it."""
    compiler = cuda.compiler(ctx, libraries="-lnccl")
    program = Program("allreduce.cu", source(__file__, "allreduce.cu", cuda.__file__), compiler=compiler)
    return (Proof("allreduce", "nccl", program, judge, "full", 300),)


def judge(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """All cards are there and have the right sums; another way than from card to card is a note."""
    ways = tuple(
        ProofFinding(f"NCCL moves data between cards {AROUND[str(one.value)]}", one.device, "note", str(one.value))
        for one in measured.named("way")
        if one.value in AROUND
    )
    wrong = not_zero(measured, "wrong sums", "what NCCL adds up over the cards is wrong")
    return (*missing(measured, expected), *wrong, *ways)
