"""A service at work with what its files say, reached by a reload, which ends no connection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from hostwright.common.quoting import sh, sh_file, words
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources.originals import MARK, ORIGIN, changed


@dataclass(frozen=True, slots=True)
class ReloadedAfter:
    """A unit that runs was started or reloaded after its files were last changed.

    As ``RestartedAfter``, for a unit that reads its files anew when it is reloaded.

    >>> from hostwright.plan.testing import plan_text
    >>> reloaded = ReloadedAfter("nginx.service", ("/etc/nginx/nginx.conf",))
    >>> print(plan_text(reloaded, {"busctl": "/etc/nginx/nginx.conf\\n"}))
    ~ reload of nginx.service: older than nginx.conf → at work with its files
    """

    unit: str
    files: tuple[str, ...]  #: paths of what it reads
    inputs: tuple[Resource, ...] = ()  #: the states that write these files

    def probes(self) -> tuple[Probe, ...]:
        kept = any(path.startswith((f"{ORIGIN}/", "/var/lib/hostwright/")) for path in self.files)
        own = Probe(self._newer(), root=kept)
        return (own, *(probe for state in self.inputs for probe in state.probes()))

    def plan(self, facts: Facts) -> Change | None:
        newer = facts[self.probes()[0]].strip().splitlines()
        coming = [change.what for state in self.inputs if (change := state.plan(facts)) is not None]
        if not newer and not coming:
            return None
        names = ", ".join(PurePosixPath(path).name.removesuffix(MARK) for path in newer)
        have = f"older than {names}" if newer else "at work with what is about to change"
        lines = [
            f'if [ -z "$({self._newer()})" ]; then exit 0; fi',
            "nginx -t -q",
            sh("systemctl reload -- %s || { journalctl -u %s -n 30 --no-pager; exit 1; }", self.unit, self.unit),
        ]
        return Change(f"reload of {self.unit}", have, "at work with its files", (Step("\n".join(lines)),))

    def removal(self) -> tuple[Resource, ...]:
        """The unit may outlive us: then it is reloaded once our files are gone."""
        gone = tuple(state for one in self.inputs for state in one.removal())
        return (ReloadedAfter(self.unit, tuple(changed(path) for path in self.files), gone),)

    def _newer(self) -> str:
        escaped = "".join(char if char.isascii() and char.isalnum() else f"_{ord(char):02x}" for char in self.unit)
        path = f"/org/freedesktop/systemd1/unit/{escaped}"
        return sh_file(__file__, "sh/newer.sh", object=path) + "newer " + words(self.files)
