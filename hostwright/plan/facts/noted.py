"""Facts that note what is read of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from hostwright.plan.facts import ALL, Answer, Facts, Probe

Notes = dict[Hashable, Hashable]  #: what was read, in order: each question, and a token of what was there


class NotedFacts(Facts):
    """The same facts. Whatever is asked of them is noted, also that a probe was not asked."""

    __slots__ = ("_notes", "_read")

    def __init__(self, facts: Facts, notes: Notes):  # without the answers themselves, of which there is no copy
        self._read, self._notes = facts, notes

    @property
    def late(self) -> Mapping[Probe, Answer]:
        """What was asked and did not end by itself."""
        return _NotedLate(self._read.late, self)

    def __getitem__(self, probe: Probe) -> Answer:
        self.token(probe)
        return self._read[probe]

    def __contains__(self, probe: object) -> bool:
        self.token(probe)
        return probe in self._read

    def __iter__(self) -> Iterator[Probe]:
        self.token(ALL)
        return iter(self._read)

    def __len__(self) -> int:
        self.token(ALL)
        return len(self._read)

    def token(self, question: Hashable) -> Hashable:
        """As of all facts; it is noted."""
        token = self._notes.get(question)
        if token is None:
            token = self._notes[question] = self._read.token(question)
        return token


class _NotedLate(Mapping[Probe, Answer]):
    """What did not end by itself, of noted facts."""

    def __init__(self, late: Mapping[Probe, Answer], facts: NotedFacts):
        self._late, self._facts = late, facts

    def __getitem__(self, probe: Probe) -> Answer:
        self._facts.token(probe)
        return self._late[probe]

    def __contains__(self, probe: object) -> bool:
        self._facts.token(probe)
        return probe in self._late

    def __iter__(self) -> Iterator[Probe]:
        self._facts.token(ALL)
        return iter(self._late)

    def __len__(self) -> int:
        self._facts.token(ALL)
        return len(self._late)
