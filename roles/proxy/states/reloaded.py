"""State of a service that uses its current files. A reload activates new files and ends no connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hostwright.resources import Probe, Resource, RestartedAfter, bus_path, changed
from hostwright.roles import sh, sh_file


@dataclass(frozen=True, slots=True)
class ReloadedAfter(RestartedAfter):
    """A running systemd unit was started or reloaded after the last change of its files.

    >>> from hostwright.plan.testing import plan_text
    >>> reloaded = ReloadedAfter("nginx.service", ("/etc/nginx/nginx.conf",))
    >>> print(plan_text(reloaded, {"busctl": "/etc/nginx/nginx.conf\\n"}))
    ~ reload of nginx.service: older than nginx.conf → at work with its files
    """

    KIND: ClassVar = "reloaded-after"
    WORDS: ClassVar = ("reload", "older than %s", "at work with what is about to change", "at work with its files")

    def probes(self) -> tuple[Probe, ...]:
        own, *others = super(ReloadedAfter, self).probes()
        # Only root may read the files below /var/lib/hostwright.
        kept = any(path.startswith("/var/lib/hostwright/") for path in self.files)
        return (Probe(own.script, root=own.root or kept), *others)

    def removal(self) -> tuple[Resource, ...]:
        """Return a reload, for a unit that keeps running after its files were removed."""
        gone = tuple(state for one in self.inputs for state in one.removal())
        return (ReloadedAfter(self.unit, tuple(changed(path) for path in self.files), gone),)

    def _lines(self) -> tuple[str, ...]:
        reload = "systemctl reload -- %s || { journalctl -u %s -n 30 --no-pager; exit 1; }"
        return "nginx -t -q", sh(reload, self.unit, self.unit)

    def _newer(self) -> str:
        return sh_file(__file__, "sh/newer.sh", object=bus_path(self.unit))
