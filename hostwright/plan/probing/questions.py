"""Groups the probes of a program that one ``Pass`` can answer, and numbers the probes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hostwright.plan.model import Answer, Pass, PassPart, Probe

#: An argument that every ``Pass`` prints unchanged: without characters of shell patterns, and without line breaks.
_PLAIN = re.compile(r"[A-Za-z0-9._+:@/-]{1,500}")
#: maximum output of a ``Pass`` for each argument: enough to print a path twice, with the path's properties
PASS_BYTES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A ``Pass`` that answers these probes, by number, and runs as one user."""

    kind: Pass
    members: Mapping[int, Probe]
    root: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments for ``kind``, without duplicates."""
        return tuple(dict.fromkeys(word for part in self.parts.values() for word in part.words))

    @property
    def parts(self) -> dict[int, PassPart]:
        """Number of each probe → the probe's part."""
        return {number: probe.part for number, probe in self.members.items() if probe.part}

    @property
    def cap_bytes(self) -> int:
        """The output limit for ``kind``, in bytes."""
        return PASS_BYTES * len(self.words)

    def answers(self, answer: Answer) -> Mapping[int, Answer]:
        """Return the answers to the probes, by number, from the output of ``kind``. Probes without an answer must run
        on their own.
        """
        return _answers(self, answer)


@lru_cache(maxsize=128)  # many hosts of a fleet give equal answers
def _answers(asked: Asked, answer: Answer) -> Mapping[int, Answer]:
    kind = asked.kind
    if answer.status > kind.fails_with or answer.truncated or answer.late_s:
        return {}
    try:
        found = kind.found(asked.words, answer.text)
    except ValueError:
        return {}
    by_number = {
        number: part.read(found)
        for number, part in asked.parts.items()
        if all(not (mark := kind.differing(word)) or mark not in answer.text for word in part.words)
    }
    return {number: answered for number, answered in by_number.items() if answered is not None}


@lru_cache(maxsize=64)  # the hosts of a fleet have the same probes
def passes_of(probes: tuple[Probe, ...]) -> tuple[Asked, ...]:
    """Return every ``Pass`` that answers two or more of these probes."""
    found: defaultdict[tuple[Pass, bool], dict[int, Probe]] = defaultdict(dict)
    for number, probe in enumerate(probes):
        if probe.part and all(_PLAIN.fullmatch(word) for word in probe.part.words):
            found[probe.part.kind, probe.root][number] = probe
    return tuple(Asked(kind, members, root) for (kind, root), members in found.items() if len(members) > 1)


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Return the probes without duplicates, in order of first occurrence. The index of a probe is its number in the
    program.
    """
    return tuple(dict.fromkeys(probes))
