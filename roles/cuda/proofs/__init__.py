"""Proofs (tests on a host) of GPUs without a framework: copies, memory and full load, by compiled CUDA programs."""

from __future__ import annotations

from hostwright.proofs import Program, Proof
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.base.proofs.sources import source
from hostwright.standard.roles.cuda import Cuda
from hostwright.standard.roles.cuda.compilers import OLDER_GCC
from hostwright.standard.roles.cuda.proofs import judges
from hostwright.standard.roles.cuda.section import CudaSection

#: duration of the burn-in in seconds (our choice). A GPU reaches its final temperature in one to two minutes.
BURN_IN_S = 180


def proofs(_variables: Cuda, ctx: RoleContext) -> tuple[Proof, ...]:
    """Return the proofs of copy bandwidth, memory and full load, each for every GPU."""
    nvcc = compiler(ctx)
    copies = Program("bandwidth.cu", source(__file__, "bandwidth.cu"), compiler=nvcc)
    memory = Program("memory.cu", source(__file__, "memory.cu"), compiler=nvcc)
    burn_in = Program("burnin.cu", source(__file__, "burnin.cu"), compiler=nvcc, arguments={"seconds": BURN_IN_S})
    return (
        Proof("bandwidth", "cuda", copies, judges.bandwidth, "quick", 300),
        Proof("memory", "cuda", memory, judges.memory, "quick", 600),
        Proof("burnin", "cuda", burn_in, judges.burn_in, "full", BURN_IN_S + 300),
    )


def compiler(ctx: RoleContext, libraries: str = "") -> tuple[str, ...]:
    """Return the command that compiles a proof's program with the host's nvcc. ``libraries``: linker options."""
    wanted = ctx.section(CudaSection)
    values = {"toolkit": wanted.prefix, "compiler": wanted.compiler, "libraries": libraries}
    return ("sh", "-c", OLDER_GCC + sh_file(__file__, "compile.sh", **values), "compile", "{source}", "{program}")
