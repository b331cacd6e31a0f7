"""Failures of PyTorch's environment; messages of CUDA programs are those of the layer ``cuda``."""

from __future__ import annotations

from hostwright.standard.roles.environment.failures.shadowed import environment_rules

FAILURES = environment_rules("pytorch", "PyTorch", "pytorch/pytorch#152783, #134929, #131312; NVIDIA/nccl#1180")
