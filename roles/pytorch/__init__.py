"""PyTorch in a separate venv, with CUDA, cuDNN and NCCL from wheels."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, Resource, environment_states
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.environment.beside_wheels import beside_wheels
from hostwright.standard.roles.pytorch.section import PytorchSection


@role(needs=["base"], uses=["cuda", "environment"], short="pt")
def pytorch(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[Resource]:
    """Venv with PyTorch and CUDA's libraries at pinned versions, and the compiler that Triton needs.

    The host provides only the driver. ``torch.compile`` runs a C compiler, which needs Python's headers.
    """
    section = ctx.section(PytorchSection)
    yield from beside_wheels(section)
    yield from environment_states(section, ctx.stack, v)
