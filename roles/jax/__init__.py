"""JAX in a separate venv, with CUDA, cuDNN and NCCL from wheels."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, Resource, environment_states
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.environment.beside_wheels import beside_wheels
from hostwright.standard.roles.jax.section import JaxSection


@role(needs=["base"], uses=["cuda", "environment"])
def jax(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[Resource]:
    """Venv with JAX, its CUDA plugin and CUDA's libraries, each package at its pinned version.

    The host provides only the driver: the plugin loads CUDA's libraries from the venv.
    """
    section = ctx.section(JaxSection)
    yield from beside_wheels(section)
    yield from environment_states(section, ctx.stack, v)
