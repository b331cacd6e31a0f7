"""Numbers the probes of a program for a host, and groups the probes that one ``Pass`` can answer."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from hostwright.plan.model import Answer, Pass, PassPart, Probe

#: pattern of arguments without line breaks or shell patterns
_PLAIN = re.compile(r"[A-Za-z0-9._+:@/-]{1,500}")
#: maximum number of output bytes of a ``Pass`` for each argument
PASS_BYTES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A ``Pass``, and the numbered probes that it answers. ``root`` is whether the ``Pass`` runs as root."""

    kind: Pass
    members: Mapping[int, Probe]
    root: bool

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of all ``members`` for the ``Pass``, without duplicates."""
        return tuple(dict.fromkeys(word for part in self.parts.values() for word in part.words))

    @property
    def parts(self) -> dict[int, PassPart]:
        """Probe number → part of the probe in the ``Pass``."""
        return {number: probe.part for number, probe in self.members.items() if probe.part}

    @property
    def cap_bytes(self) -> int:
        """The maximum output of the ``Pass`` in bytes."""
        return PASS_BYTES * len(self.words)

    def answers(self, answer: Answer) -> Mapping[int, Answer]:
        """Return the answers of ``members``, by probe number, from the output ``answer`` of the ``Pass``.

        Probes that are missing in the result must run on their own.
        """
        return _answers(self, answer)


@lru_cache(maxsize=128)  # Many hosts of a fleet have equal answers.
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


@lru_cache(maxsize=64)  # Many hosts of a fleet have the same probes.
def passes_of(probes: tuple[Probe, ...]) -> tuple[Asked, ...]:
    """Return each ``Pass`` that answers two or more of ``probes``, with the probes that it answers."""
    found: defaultdict[tuple[Pass, bool], dict[int, Probe]] = defaultdict(dict)
    for number, probe in enumerate(probes):
        if probe.part and all(_PLAIN.fullmatch(word) for word in probe.part.words):
            found[probe.part.kind, probe.root][number] = probe
    return tuple(Asked(kind, members, root) for (kind, root), members in found.items() if len(members) > 1)


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Return the probes without duplicates, in order of first occurrence. A probe's number is its position."""
    return tuple(dict.fromkeys(probes))
