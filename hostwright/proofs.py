"""For authors of roles: the names that a role's ``proofs.py`` uses to declare and judge measurements of a host."""

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
