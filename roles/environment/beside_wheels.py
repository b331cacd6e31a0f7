"""State of login files on hosts with CUDA wheels: no file of Hostwright puts a toolkit before the wheels' libraries."""

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
    """No login file of Hostwright puts a toolkit into ``LD_LIBRARY_PATH`` before the libraries of wheels.

    The role ``environment`` wrote such a file for an earlier stack. The toolkit and files of others are kept.
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
        return ()


def beside_wheels(section: EnvironmentSection) -> Iterator[Resource]:
    """Yield ``NoToolkitAtLogin`` if the framework in ``section`` has CUDA libraries from wheels."""
    if libraries_in(section):
        yield NoToolkitAtLogin()
