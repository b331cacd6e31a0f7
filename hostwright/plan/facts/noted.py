"""``NotedFacts``: a host's facts, with a record of the facts that are read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping

from hostwright.plan.facts import ALL, Answer, Facts, K, Probe, TableRow, There, V

Notes = dict[Hashable, Hashable]  #: mapping from dependencies, in reading order, to the token of each value


class NotedFacts(Facts):
    """A host's facts with a record: ``notes`` lists each fact that is read, even if its probe did not run."""

    __slots__ = ("_notes", "_read")

    def __init__(self, facts: Facts, notes: Notes):  # A call of ``super().__init__`` would copy the answers.
        self._read, self._notes = facts, notes

    @property
    def late(self) -> Mapping[Probe, Answer]:
        """The probes that hung and were killed, with their answers. Each read is recorded."""
        return _NotedLate(self._read.late, self)

    def __getitem__(self, probe: Probe) -> Answer:
        self.token(probe)
        return self._read[probe]

    def __contains__(self, probe: object) -> bool:
        self.there(probe)
        return probe in self._read

    def __iter__(self) -> Iterator[Probe]:
        self.token(ALL)
        return iter(self._read)

    def __len__(self) -> int:
        self.token(ALL)
        return len(self._read)

    def table(self, probe: Probe, read: Callable[[str], Mapping[K, V]]) -> Mapping[K, V]:
        """Return ``Facts.table(probe, read)`` as a mapping that records each entry that the caller reads."""
        self.there(probe)
        return _NotedTable(probe, read, self, self._read.table(probe, read))

    def there(self, probe: object) -> None:
        """Record a dependency on whether ``probe`` has an answer."""
        if isinstance(probe, Probe) and probe not in self._notes:
            self.token(There(probe))

    def token(self, question: Hashable) -> Hashable:
        """Return ``Facts.token`` for the dependency ``question``, and record this dependency."""
        token = self._notes.get(question)
        if token is None:
            token = self._notes[question] = self._read.token(question)
        return token


class _NotedLate(Mapping[Probe, Answer]):
    def __init__(self, late: Mapping[Probe, Answer], facts: NotedFacts):
        self._late, self._facts = late, facts

    def __getitem__(self, probe: Probe) -> Answer:
        self._facts.token(probe)
        return self._late[probe]

    def __contains__(self, probe: object) -> bool:
        self._facts.there(probe)
        return probe in self._late

    def __iter__(self) -> Iterator[Probe]:
        self._facts.token(ALL)
        return iter(self._late)

    def __len__(self) -> int:
        self._facts.token(ALL)
        return len(self._late)


class _NotedTable(Mapping[K, V]):
    def __init__(self, probe: Probe, read: Callable[[str], Mapping[K, V]], facts: NotedFacts, entries: Mapping[K, V]):
        self._probe, self._read, self._facts, self._entries = probe, read, facts, entries

    def __getitem__(self, key: K) -> V:
        self._facts.token(TableRow(self._probe, self._read, key))
        return self._entries[key]

    def __contains__(self, key: object) -> bool:
        self._facts.token(TableRow(self._probe, self._read, key))
        return key in self._entries

    def __iter__(self) -> Iterator[K]:
        self._facts.token(self._probe)
        return iter(self._entries)

    def __len__(self) -> int:
        self._facts.token(self._probe)
        return len(self._entries)
