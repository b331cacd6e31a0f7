"""Loader configuration: of Hostwright's files in ``/etc/ld.so.conf.d``, only the current stack's file remains.

The previous stack's toolkit is kept for a rollback. With the previous loader file, the loader would find libraries of
both toolkits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostwright.resources import DPKG_LOCK, Change, Facts, Probe, Resource, Step
from hostwright.roles import Pattern, sh, words

LDCONFIG = "/sbin/ldconfig"
_NAME = Pattern(r"cuda-[0-9]{1,9}-[0-9]{1,9}[.]conf")

DIRECTORY = "/etc/ld.so.conf.d"

#: shell text that prints loader files with exactly the lines of the role ``environment``
_OURS = """\
for file in "$folder"/cuda-[0-9]*-[0-9]*.conf; do
  [ -f "$file" ] && [ ! -L "$file" ] && [ "$file" != "$keep" ] || continue
  series=${file##*/cuda-}; series=${series%.conf}
  home=/usr/local/cuda-${series%%-*}.${series#*-}
  [ "$(cat -- "$file")" = "$(printf '%s\\n' "$home/targets/x86_64-linux/lib" "$home/extras/CUPTI/lib64")" ] || continue
  dpkg-query -S -- "$file" >&2 || echo "$file"
done
:
"""


@dataclass(frozen=True, slots=True)
class OneToolkitLoaded(Resource):
    """No file of Hostwright in ``directory``, except ``keep``, names a toolkit. Other files are kept."""

    keep: str
    directory: str = DIRECTORY

    def probes(self) -> tuple[Probe, ...]:
        return (Probe(sh("folder=%s keep=%s\n", self.directory, self.keep) + _OURS, shared=True),)

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
        return ()

    def _ours(self, path: str) -> bool:
        """Return whether this resource may remove ``path``, which comes from the host's untrusted output."""
        folder, _, name = path.rpartition("/")
        return folder == self.directory and _NAME.fullmatch(name) is not None and path != self.keep
