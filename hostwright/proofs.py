"""For authors of roles: proofs (``proofs.py``), which are programs that measure a host, and the checks of their
results.
"""

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
