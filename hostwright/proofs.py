"""For authors of roles: names for ``proofs.py``, which declares programs that measure a host and judges the results."""

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
