"""Whether DKMS builds the driver's module for the kernel that comes next."""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import Change, Facts, Probe, Resource, Step
from hostwright.roles import Pattern, sh, sh_file

_CONF = Pattern(r"/usr/src/nvidia[a-z-]{0,40}-[0-9.]{1,20}/dkms\.conf")
_ON = """\
sed -i 's/^AUTOINSTALL=.*/AUTOINSTALL="yes"/' %s
grep -q ^AUTOINSTALL= %s || sed -i '$a AUTOINSTALL="yes"' %s
"""
_NOTES = {
    "theirs": "{path} switches AUTOINSTALL off, so that DKMS does not build the driver's module for the next kernel, "
    "which then starts without GPUs: take that line out",
    "hook": "{path} is missing or not executable, so that kernel packages do not call DKMS and the next kernel starts "
    "without GPUs: apt-get install --reinstall -o Dpkg::Options::=--force-confmiss dkms, or chmod +x {path}",
}


@dataclass(frozen=True, slots=True)
class AutoBuild(Resource):
    """AUTOINSTALL in the ``dkms.conf`` of this version: without it, DKMS builds nothing for a kernel that apt brings.

    What an operator wrote below ``/etc`` is told, and not changed.
    """

    version: str

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh_file(__file__, "sh/autobuild.sh", version=self.version), root=True, shared=True),)

    def _found(self, facts: Facts) -> list[tuple[str, str]]:
        pairs = (line.partition(" ")[::2] for line in facts[self.probes()[0]].text.splitlines())
        return [(what, path) for what, path in pairs if path]

    def plan(self, facts: Facts) -> Change | None:
        off = [path for what, path in self._found(facts) if what == "off" and _CONF.fullmatch(path)]
        if not off:
            return None
        have = f"not built for the next kernel: AUTOINSTALL is off in {', '.join(off)}"
        return Change(
            "NVIDIA kernel module",
            have,
            "built by DKMS for each",
            tuple(Step(sh(_ON, path, path, path)) for path in off),
        )

    def notes(self, facts: Facts) -> tuple[str, ...]:
        """What of the operator's keeps DKMS from it."""
        return tuple(_NOTES[what].format(path=path) for what, path in self._found(facts) if what in _NOTES)

    def removal(self) -> tuple[Resource, ...]:
        return ()
