"""CDI specifications: they name the driver's files one by one, and are made once, by hand or at a boot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostwright.failures import FailureRule, ForPeople, Sign
from hostwright.resources import Probe
from hostwright.roles import Pattern, sh_file

if TYPE_CHECKING:
    from hostwright.failures import AuditContext

MOST = 3  #: missing files that are named of each specification; all have the driver's former version
CDI = Probe(sh_file(__file__, "cdi.sh", most=MOST), root=True)  # some sites keep them for root alone
_MISSING = Pattern(r"missing (/(?:etc|var/run)/cdi/[^ ]+) (/.+)")


def stale(ctx: AuditContext) -> Iterator[str]:
    """A CDI specification of NVIDIA's in /etc/cdi or /var/run/cdi names files that are not on the host."""
    for line in ctx.text(CDI).splitlines():
        if match := _MISSING.fullmatch(line):
            yield f"{match[1]} names {match[2]}, which is not there"


CDI_RULES = (
    FailureRule(
        "cdi-stale",
        r"(?:error stat'ing file|cannot stat|error mounting) .{0,4}/[^\n]{0,200}(?:nvidia|libcuda)[^\n]*"
        r"no such file or directory",
        "a CDI specification names files of a driver that is not on the host any more: it was made before the driver"
        " was replaced, and no container starts that asks for its devices",
        "Make it anew: nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml; remove copies of it in the other of"
        " /etc/cdi and /var/run/cdi, of which the latter wins",
        "CDI specification; Igalia/webkit-container-sdk#23",
        sign=Sign("container", stale, (CDI,)),
        treatment=ForPeople(),
    ),
)
