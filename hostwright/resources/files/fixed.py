"""Files that not even root can replace: immutable ones (``chattr +i``), mount points, read-only file systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hostwright.common.quoting import sh_file, words
from hostwright.plan.model import Answer, Change, Facts, PassPart, Probe, Refusal

#: ``fixed PATH...``
_FIXED = sh_file(__file__, "sh/fixed.sh")

RULE = "file-cannot-be-replaced"
_WHY = {
    "immutable": "is immutable (lsattr shows i); if it may change, run chattr -i",
    "append": "may only be appended to (lsattr shows a); if it may change, run chattr -a",
    "mounted": "is a mount point; run umount",
    "read-only": "lies on a file system that is mounted read-only; see findmnt -T",
}


@dataclass(frozen=True, slots=True)
class FixedPass:
    """The paths whose file cannot be replaced, each with the reason."""

    fails_with: int = 0

    def script(self, asked: Sequence[str]) -> str:
        """See ``plan.model.Pass``."""
        return f"{_FIXED}fixed {words(tuple(asked))}"

    def differing(self, word: str) -> str:  # noqa: ARG002 - the output answers all
        """See ``plan.model.Pass``."""
        return ""

    def found(self, asked: Sequence[str], text: str) -> Mapping[str, str]:  # noqa: ARG002 - of the others it says nothing
        """The line of each such path."""
        return {line.rpartition("\t")[2]: line for line in text.splitlines()}


_PASS = FixedPass()


@lru_cache(maxsize=1024)
def fixed_probe(path: str) -> Probe:
    """Why the file at a path cannot be replaced; nothing where it can."""
    part = PassPart(_PASS, (path,), lambda found: Answer(0, found.get(path, "")))
    return Probe(_PASS.script([path]), root=True, part=part)


def unless_fixed(change: Change, path: str, facts: Facts) -> Change | Refusal:
    """The change of a file, or the refusal of a host where it would fail. Reads ``fixed_probe(path)``."""
    kind, _, where = facts[fixed_probe(path)].strip().partition("\t")
    where = where.partition("\t")[0]
    if kind not in _WHY:
        return change
    subject = "it" if where == path else where
    sentence = f"{path} cannot be replaced: {subject} {_WHY[kind]} {where}, and provision again"
    return Refusal(change.what, change.have, change.want, RULE, sentence)
