"""PyTorch, in an environment of its own that brings CUDA, cuDNN and NCCL as wheels."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, Resource, environment_states
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.environment.beside_wheels import beside_wheels
from hostwright.standard.roles.pytorch.section import PytorchSection


@role(needs=["base"], uses=["cuda", "environment"], short="pt")
def pytorch(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[Resource]:
    """A venv with every package at its pin, CUDA's libraries among them, and what Triton compiles with.

    The host gives the driver alone. ``torch.compile`` calls a C compiler, which needs Python's headers.
    """
    section = ctx.section(PytorchSection)
    yield from beside_wheels(section)
    yield from environment_states(section, ctx.stack, v)
