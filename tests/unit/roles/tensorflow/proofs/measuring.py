"""Measurements in the format of the hosts' programs, for tests of findings."""

from __future__ import annotations

from hostwright.audit.hardware.gpu import Gpu
from hostwright.prove.model import NO_GPU, Expected, Measurement, Measurements, ProofFinding

T4 = "GPU-0d5c1d4e-7a51-4ad9-93b5-2d1ac0c1e001 (Tesla T4)"
OTHER_T4 = "GPU-0d5c1d4e-7a51-4ad9-93b5-2d1ac0c1e002 (Tesla T4)"
FIRST = Gpu(0, "0000:3b:00.0", T4.removesuffix(" (Tesla T4)"), "Tesla T4")
SECOND = Gpu(1, "0000:5e:00.0", OTHER_T4.removesuffix(" (Tesla T4)"), "Tesla T4")
ONE_GPU = Expected("gpu01", (FIRST,), 1, 1)
TWO_GPUS = Expected("gpu01", (FIRST, SECOND), 2, 2)
WITHOUT = Expected("cpu01", (), None, 0)

Rows = dict[tuple[str, str], float | str | bool | None]  #: by name and device


def measured(rows: Rows, **units: str) -> Measurements:
    """Return measurements of these rows; rows without a device look like those of a program without a GPU."""
    return Measurements(
        tuple(
            Measurement(name, value, units.get(name.replace(" ", "_").replace("-", "_"), ""), device or NO_GPU)
            for (name, device), value in rows.items()
        )
    )


def severities(findings: tuple[ProofFinding, ...]) -> list[tuple[str, str]]:
    """Return the severity and device of each finding."""
    return [(finding.severity, finding.device) for finding in findings]
