"""Environments that bring CUDA as wheels: no login file of ours puts another toolkit before them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.resources import Change, EnvironmentSection, Facts, Probe, Resource, Step
from hostwright.roles import Pattern, sh
from hostwright.standard.roles.cuda.wheels import libraries_in

LOGIN_FILE = "/etc/profile.d/cuda.sh"
_OURS = Pattern(
    r"# CUDA ([0-9]{1,3}\.[0-9]{1,3}) for login shells of any Bourne kind\. Written by Hostwright; .{1,200}"
)


@dataclass(frozen=True, slots=True)
class NoToolkitAtLogin(Resource):
    """No file of ours for login shells sets ``LD_LIBRARY_PATH`` to a toolkit, before the libraries of wheels.

    A former stack's role ``environment`` wrote it. The toolkit and its file in ``/etc/ld.so.conf.d`` stay, so that the
    environments of that stack still find their libraries; going back writes the file again. A file of others stays.
    """

    path: str = LOGIN_FILE

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("head -n 1 -- %s", self.path)),)

    def plan(self, facts: Facts) -> Change | None:
        ours = _OURS.fullmatch(facts[self.probes()[0]].text.strip())
        if ours is None:
            return None
        return Change(
            f"login file {self.path}",
            f"puts CUDA {ours[1]} before the libraries of wheels",
            "absent (the toolkit stays, and the loader finds it)",
            (Step(sh("rm -f -- %s", self.path)),),
        )

    def removal(self) -> tuple[Resource, ...]:
        """Nothing: only the role environment writes such a file."""
        return ()


def beside_wheels(section: EnvironmentSection) -> Iterator[Resource]:
    """What an environment needs of login shells if its wheels hold libraries of CUDA."""
    if libraries_in(section):
        yield NoToolkitAtLogin()
