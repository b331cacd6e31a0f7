"""Free disk space for what is still to be installed, and only for that: a host that has everything may be full."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from hostwright.common.quoting import words
from hostwright.plan.model import Facts, Probe, Refusal, Resource
from hostwright.stack.stack import Share

GB = 1_000_000_000
RULE = "free-disk"  #: what a host is refused for
_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class FreeSpace:
    r"""There is enough free space on each filesystem for what is still to be installed; else the host is refused.

    A host that has everything may be full: shares whose ``unless`` exists are not counted. Directories on one
    filesystem are added up. Nothing is changed on the host, so nothing stays behind.

    >>> from hostwright.plan.testing import plan_text
    >>> space = FreeSpace(10 * GB, (Share("the tool", "/opt/tool/bin", "/opt", 80),))
    >>> rows = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/sda1 9000000 8000000 1000000 89% /\n"
    >>> print(plan_text(space, {"df -Pk": rows}))
    ! free disk: / has 1.0 GB free and 8.0 GB are needed → enough for what is missing
      refused: too little disk for the tool: / has 1.0 GB free and 8.0 GB are needed; free some or enlarge it
    """

    KIND: ClassVar = "free-space"

    total_bytes: int  #: what a bare host needs for everything, in bytes
    #: what each part takes of that, in percent, below which directory, and the path that exists once it is installed
    shares: tuple[Share, ...]

    def probes(self) -> tuple[Probe, ...]:
        directories = words(tuple(sorted({share.directory for share in self.shares})))
        paths = words(tuple(sorted({share.unless for share in self.shares})))
        #: ``df``: each directory's filesystem and its free KiB; then the paths that are there.
        return (
            Probe("df -Pk -- " + directories),
            Probe("for p in " + paths + '; do if [ -e "$p" ]; then echo "$p"; fi; done'),
        )

    def plan(self, facts: Facts) -> Refusal | None:
        filesystems, present = (facts[probe] for probe in self.probes())
        installed = set(present.text.splitlines())
        free = _free(filesystems.text, sorted({share.directory for share in self.shares}))
        needed: dict[str, int] = {}
        for share in self.shares:
            if share.unless not in installed and share.directory in free:
                mount, _ = free[share.directory]
                needed[mount] = needed.get(mount, 0) + self.total_bytes * share.percent // 100
        short = [
            f"{mount} has {have / GB:.1f} GB free and {needed[mount] / GB:.1f} GB are needed"
            for mount, have in sorted(set(free.values()))
            if needed.get(mount, 0) > have
        ]
        if not short:
            return None
        due = ", ".join(dict.fromkeys(share.part for share in self.shares if share.unless not in installed))
        sentence = f"too little disk for {due}: {'; '.join(short)}; free some or enlarge it"
        return Refusal("free disk", "; ".join(short), "enough for what is missing", RULE, sentence)

    def removal(self) -> tuple[Resource, ...]:
        return ()


def _free(text: str, directories: list[str]) -> dict[str, tuple[str, int]]:
    """Directory → mount point and free bytes, from ``df -Pk`` whose rows come in the order of its arguments."""
    rows = [line.split(None, 5) for line in text.splitlines()[1:]]
    if len(rows) != len(directories):  # one of them does not exist on this host: nothing is known
        return {}
    pairs = zip(directories, rows, strict=True)
    return {name: (row[5], int(row[3]) * 1024) for name, row in pairs if len(row) == 6 and _NUMBER.fullmatch(row[3])}
