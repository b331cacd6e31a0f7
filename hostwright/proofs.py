"""For authors of roles: proofs (``proofs.py``), programs that measure a host, and the judgement of their results."""

from __future__ import annotations

from hostwright.plan.facts.expected import MODEL
from hostwright.prove.model import (
    CPU,
    Expected,
    Level,
    Measurement,
    Measurements,
    Program,
    Proof,
    ProofFinding,
    Severity,
    Watch,
)

__all__ = [
    "CPU", "MODEL", "Expected", "Level", "Measurement", "Measurements", "Program", "Proof", "ProofFinding", "Severity",
    "Watch",
]  # fmt: skip
