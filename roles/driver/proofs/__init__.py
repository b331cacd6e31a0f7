"""What is proved of cards through their driver: their places, and DCGM's diagnosis; and how they are kept from heat."""

from __future__ import annotations

from pathlib import Path

from hostwright.proofs import Program, Proof, Watch
from hostwright.roles import RoleContext, sh_file
from hostwright.standard.roles.driver import Driver
from hostwright.standard.roles.driver.proofs import judges

MARGIN = 5  #: degrees below the temperature at which the card slows down: our choice
#: degrees, of a card that tells no limit: our choice. GCM wants one from its user, gpud takes what the card tells
OTHERWISE = 85
#: of `dcgmi diag`: 2 takes some two minutes (NVIDIA's DCGM user guide); 3 takes a quarter of an hour, and does what the
#: proofs of the toolkit do
LEVEL = 2

WATCH = Watch(sh_file(__file__, "watch.sh", margin=MARGIN, otherwise=OTHERWISE))


def proofs(_variables: Driver, _ctx: RoleContext) -> tuple[Proof, ...]:
    """The cards' NUMA nodes, and DCGM's diagnosis."""
    placement = Program("placement.sh", sh_file(__file__, "placement.sh"), interpreter=("sh",))
    text = Path(__file__).with_name("diagnostics.py").read_text("utf-8")
    diagnostics = Program("diagnostics.py", text, interpreter=("python3",), arguments={"level": LEVEL})
    return (
        Proof("placement", "driver", placement, judges.placement, "quick", 60),
        Proof("diagnostics", "driver", diagnostics, judges.diagnostics, "full", 900),
    )
