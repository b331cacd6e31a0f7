"""One toolkit's libraries in the loader's path: of the files that name ours, only the stack's.

Toolkits lie side by side under ``/usr/local``, the former one for the way back. Its file in ``/etc/ld.so.conf.d`` must
not stay: both name libraries of one soname, and the loader takes whichever comes first. Going back writes it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hostwright.common.quoting import sh, words
from hostwright.plan.model import Change, Facts, Probe, Resource, Step
from hostwright.resources.packages.packages import DPKG_LOCK

LDCONFIG = "/sbin/ldconfig"
_NAME = re.compile(r"cuda-[0-9]+-[0-9]+[.]conf")

DIRECTORY = "/etc/ld.so.conf.d"

#: The files in ``$folder`` beside ``$keep`` that are, line by line, what the role environment writes for a toolkit's
#: series. Anything more or less in one, or a package that owns it, and it is somebody else's.
_OURS = """\
for file in "$folder"/cuda-[0-9]*-[0-9]*.conf; do
  [ -f "$file" ] && [ ! -L "$file" ] && [ "$file" != "$keep" ] || continue
  series=${file##*/cuda-}; series=${series%.conf}
  home=/usr/local/cuda-${series%%-*}.${series#*-}
  [ "$(cat -- "$file")" = "$(printf '%s\\n' "$home/targets/x86_64-linux/lib" "$home/extras/CUPTI/lib64")" ] || continue
  dpkg-query -S -- "$file" >&2 || echo "$file"
done
exit 0
"""


@dataclass(frozen=True, slots=True)
class OneToolkitLoaded:
    """No file of ours in ``directory`` names a toolkit but ``keep``. What others wrote there stays."""

    keep: str
    directory: str = DIRECTORY

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("folder=%s keep=%s\n", self.directory, self.keep) + _OURS),)

    def plan(self, facts: Facts) -> Change | None:
        lines = [line for line in facts[self.probes()[0]].text.splitlines() if self._ours(line)]
        if not lines:
            return None
        return Change(
            "loader files of other toolkits",
            ", ".join(lines),
            f"only {self.keep} (the toolkits themselves stay)",
            (Step(f"rm -f -- {words(tuple(lines))}\n{LDCONFIG}", DPKG_LOCK),),
        )

    def removal(self) -> tuple[Resource, ...]:
        """A file that went is of no use to a host without a toolkit of ours."""
        return ()

    def _ours(self, path: str) -> bool:
        """Whether a host's answer is a path that this resource may take away, whatever the host says."""
        folder, _, name = path.rpartition("/")
        return folder == self.directory and _NAME.fullmatch(name) is not None and path != self.keep
