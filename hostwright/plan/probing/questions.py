"""What a program asks a host, in order: probes, and passes, of which each answers the probes that are its parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hostwright.plan.model import Answer, Pass, PassPart, Probe

#: A word that every tool prints as it is, and that no shell pattern and no line can be mistaken for.
_PLAIN = re.compile(r"[A-Za-z0-9._+:@/-]{1,500}")
PASS_BYTES = 1024  #: of a pass's output, for each of its words: a path twice, and what is found there


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A pass over these probes, by their numbers, as one user."""

    kind: Pass
    members: Mapping[int, Probe]
    root: bool

    @property
    def words(self) -> tuple[str, ...]:
        """What it is asked about, each once."""
        return tuple(dict.fromkeys(word for part in self.parts.values() for word in part.words))

    @property
    def parts(self) -> dict[int, PassPart]:
        """The part of each of its probes."""
        return {number: probe.part for number, probe in self.members.items() if probe.part}

    @property
    def cap_bytes(self) -> int:
        """How long its output may be."""
        return PASS_BYTES * len(self.words)

    def answers(self, answer: Answer) -> Mapping[int, Answer]:
        """What its own answer says of its probes, by their numbers; the others have to be asked alone."""
        return _answers(self, answer)


@lru_cache(maxsize=128)  # the hosts of a fleet answer much alike
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


@lru_cache(maxsize=64)  # the hosts of a fleet are asked the same
def passes_of(probes: tuple[Probe, ...]) -> tuple[Asked, ...]:
    """The passes that answer two or more of these probes."""
    found: defaultdict[tuple[Pass, bool], dict[int, Probe]] = defaultdict(dict)
    for number, probe in enumerate(probes):
        if probe.part and all(_PLAIN.fullmatch(word) for word in probe.part.words):
            found[probe.part.kind, probe.root][number] = probe
    return tuple(Asked(kind, members, root) for (kind, root), members in found.items() if len(members) > 1)


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Each probe once, in the order of first mention: its index is its number in the program."""
    return tuple(dict.fromkeys(probes))
