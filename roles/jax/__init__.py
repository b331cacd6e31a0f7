"""JAX, in an environment of its own that brings CUDA, cuDNN and NCCL as wheels."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.resources import EnvironmentVariables, Resource, environment_states
from hostwright.roles import RoleContext, role
from hostwright.standard.roles.environment.beside_wheels import beside_wheels
from hostwright.standard.roles.jax.section import JaxSection


@role(needs=["base"], uses=["cuda", "environment"])
def jax(v: EnvironmentVariables, ctx: RoleContext) -> Iterator[Resource]:
    """A venv with every package at its pin, JAX's CUDA plugin and CUDA's libraries among them.

    The host gives the driver alone: the plugin opens the libraries in the environment by their paths.
    """
    section = ctx.section(JaxSection)
    yield from beside_wheels(section)
    yield from environment_states(section, ctx.stack, v)
