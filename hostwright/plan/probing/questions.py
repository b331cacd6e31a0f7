"""The probes and passes of a program, in order; a pass answers the probes that are its parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hostwright.plan.model import Answer, Pass, PassPart, Probe

#: A word that every tool prints unchanged, without characters of shell patterns and without line breaks.
_PLAIN = re.compile(r"[A-Za-z0-9._+:@/-]{1,500}")
PASS_BYTES = 1024  #: output limit of a pass for each word: a path twice, and its properties


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A pass over these probes, by number, as one user."""

    kind: Pass
    members: Mapping[int, Probe]
    root: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of the pass, each once."""
        return tuple(dict.fromkeys(word for part in self.parts.values() for word in part.words))

    @property
    def parts(self) -> dict[int, PassPart]:
        """The part of each of its probes, by number."""
        return {number: probe.part for number, probe in self.members.items() if probe.part}

    @property
    def cap_bytes(self) -> int:
        """The output limit of the pass in bytes."""
        return PASS_BYTES * len(self.words)

    def answers(self, answer: Answer) -> Mapping[int, Answer]:
        """The answers of its probes, by number; probes that are missing must run on their own."""
        return _answers(self, answer)


@lru_cache(maxsize=128)  # many hosts of a fleet have the same answers
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
    """The passes that answer two or more of these probes."""
    found: defaultdict[tuple[Pass, bool], dict[int, Probe]] = defaultdict(dict)
    for number, probe in enumerate(probes):
        if probe.part and all(_PLAIN.fullmatch(word) for word in probe.part.words):
            found[probe.part.kind, probe.root][number] = probe
    return tuple(Asked(kind, members, root) for (kind, root), members in found.items() if len(members) > 1)


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """The probes without duplicates, in order of first occurrence: an index is the probe's number in the program."""
    return tuple(dict.fromkeys(probes))
