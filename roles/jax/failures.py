"""Failures of JAX and its environment; messages of CUDA programs are those of the layer ``cuda``."""

from __future__ import annotations

from hostwright.failures import FailureRule
from hostwright.standard.roles.environment.failures.shadowed import environment_rules

FAILURES = (
    FailureRule(
        "jax-without-plugin",
        r"a CUDA-enabled jaxlib is not installed"
        r"|JAX plugin jax_cuda\w{1,20} version [0-9.]{1,12} is installed, but it is not compatible",
        "JAX computes on the CPU: its CUDA plugin is not in this environment, or is of another release than jaxlib",
        "Use the stack's environment, which has both; elsewhere install jax[cuda13] or jax[cuda12] in one command",
        "jax-ml/jax jax/_src/xla_bridge.py",
    ),
    *environment_rules("jax", "JAX", "jax-ml/jax docs/installation.md"),
)
