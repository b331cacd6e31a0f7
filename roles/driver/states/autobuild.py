"""Resource that lets DKMS build the driver's module for the next kernel."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Change, Facts, Probe, Resource, Step
from hostwright.roles import Pattern, sh, sh_file

_CONF = Pattern(r"/usr/src/nvidia[a-z-]{0,40}-[0-9.]{1,20}/dkms\.conf")
_ON = """\
sed -i 's/^AUTOINSTALL=.*/AUTOINSTALL="yes"/' %s
grep -q ^AUTOINSTALL= %s || sed -i '$a AUTOINSTALL="yes"' %s
"""


@dataclass(frozen=True, slots=True)
class AutoBuild(Resource):
    """``AUTOINSTALL="yes"`` is in this driver's ``dkms.conf``, so that DKMS builds the module for each new kernel.

    An operator's files below ``/etc/dkms`` take precedence; the doctor reports them (``dkms-not-for-next-kernel``).
    """

    version: str

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh_file(__file__, "sh/autobuild.sh", version=self.version), root=True, shared=True),)

    def plan(self, facts: Facts) -> Change | None:
        off = [path for path in facts[self.probes()[0]].text.splitlines() if _CONF.fullmatch(path)]
        if not off:
            return None
        have = f"not built for the next kernel: AUTOINSTALL is off in {', '.join(off)}"
        return Change(
            "NVIDIA kernel module",
            have,
            "built by DKMS for each",
            tuple(Step(sh(_ON, path, path, path)) for path in off),
        )

    def removal(self) -> tuple[Resource, ...]:
        return ()
