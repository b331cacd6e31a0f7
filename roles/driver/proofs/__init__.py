"""Proofs (tests) of a host's GPUs through the driver: NUMA placement, DCGM's diagnosis, and a temperature limit."""

from __future__ import annotations

from pathlib import Path

from hostwright.proofs import Program, Proof, Watch
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.proofs import judges

#: degrees Celsius below a GPU's slowdown temperature at which a running proof is stopped (our choice)
MARGIN = 5
#: degrees Celsius at which a running proof is stopped if the GPU reports no limit (our choice)
OTHERWISE = 85
#: level of `dcgmi diag`. Level 2 takes about two minutes (DCGM user guide), and level 3 a quarter of an hour.
LEVEL = 2

WATCH = Watch(sh_file(__file__, "watch.sh", margin=MARGIN, otherwise=OTHERWISE))


def proofs(_variables: Driver, _ctx: RoleContext) -> tuple[Proof, ...]:
    """Return the proofs of the GPUs' NUMA nodes and of DCGM's diagnosis."""
    placement = Program("placement.sh", sh_file(__file__, "placement.sh"), interpreter=("sh",))
    text = Path(__file__).with_name("diagnostics.py").read_text("utf-8")
    diagnostics = Program("diagnostics.py", text, interpreter=("python3",), arguments={"level": LEVEL})
    return (
        Proof("placement", "driver", placement, judges.placement, "quick", 60),
        Proof("diagnostics", "driver", diagnostics, judges.diagnostics, "full", 900),
    )
