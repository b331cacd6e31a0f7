"""Checks across all workspaces of a host: one port each, no GPU used twice, and limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from hostwright.roles import suggestion
from hostwright.standard.roles.workspaces.declared.entries import NOBODY, WorkspaceEntry, WorkspaceLimits, WorkspaceUser
from hostwright.standard.roles.workspaces.declared.forms import bytes_of
from hostwright.standard.roles.workspaces.declared.gpus import clash

Entries = Mapping[str, WorkspaceEntry]
Wrong = tuple[str, str]  #: name of a workspace or user, and error text about this name


@dataclass(frozen=True, slots=True)
class PortRange:
    """Range of ports for workspaces without a port in the inventory."""

    first: int
    last: int

    @classmethod
    def read(cls, text: str) -> PortRange:
        """Parse a range such as ``20000-29999``. Raises ``ValueError`` for any other text or an invalid port."""
        first, dash, last = text.partition("-")
        if not (dash and first.isdigit() and last.isdigit() and 1024 <= int(first) <= int(last) <= 65535):
            raise ValueError(f"found {text!r}, expected a range of ports from 1024 to 65535, such as 20000-29999")
        return cls(int(first), int(last))

    def __len__(self) -> int:
        return self.last - self.first + 1

    def home(self, name: str) -> int:
        """Return the port for a hash of the workspace's name. Two names may have the same port."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        return self.first + number % len(self)


def ports_of(entries: Entries, ports: PortRange) -> dict[str, int]:
    """Return name → port for each workspace that needs a port.

    A declared port is kept. A port derived from the name depends on other workspaces only if they use the same port.
    Raises ``ValueError`` if the range ``ports`` is too small.
    """
    given = {name: entry.port for name, entry in entries.items() if entry.port}
    taken = set(given.values())
    for name in sorted(name for name, entry in entries.items() if entry.kind != "batch" and not entry.port):
        first = ports.home(name) - ports.first
        order = (ports.first + (first + step) % len(ports) for step in range(len(ports)))
        port = next((port for port in order if port not in taken), None)
        if port is None:
            raise ValueError(
                f"the ports {ports.first}-{ports.last} are too few for {len(entries)} workspaces; set a wider range"
            )
        given[name] = port
        taken.add(port)
    return given


def not_shared(
    one: WorkspaceEntry, gpus: tuple[str, ...], other: WorkspaceEntry, others: tuple[str, ...], cards: Mapping[str, str]
) -> tuple[str, str] | None:
    """Return two GPUs that the workspaces ``one`` and ``other`` cannot both use; else ``None``.

    ``gpus``: GPUs of ``one``. ``others``: GPUs of ``other``. ``cards``: MIG device → GPU. Both workspaces can use a GPU
    if both have ``share``, or if both are batch runs.
    """
    both = None if one.share and other.share else clash(gpus, others, cards)
    queued = both is not None and both[0] == both[1] and one.kind == other.kind == "batch"
    return None if queued else both


def person_of(entry: WorkspaceEntry, users: Mapping[str, WorkspaceUser]) -> WorkspaceUser | None:
    """Return the user of the workspace ``entry``; ``None`` if ``users`` lacks the user. A model server without a user
    gets an empty ``WorkspaceUser``.
    """
    known = users.get(entry.user)
    return WorkspaceUser() if known is None and entry.kind == "serving" and entry.user == NOBODY else known


def uids_given_twice(users: Mapping[str, WorkspaceUser]) -> Iterator[Wrong]:
    """Yield each user with the uid of an earlier user, and an error text.

    Users who left count, because their files still exist.
    """
    first: dict[int, str] = {}
    for name, person in users.items():
        other = name if person.uid is None else first.setdefault(person.uid, name)
        if other != name:
            left = [each for each in (other, name) if users[each].left]
            stay = f" (the files of {left[0]}, who left, are kept)" if left else ""
            yield (
                name,
                f"uid {person.uid} is given to {other} and to {name}, so that each could read and change the other's"
                f" files{stay}; give {name} a uid that was never used",
            )


def wrong_together(entries: Entries, users: Mapping[str, WorkspaceUser]) -> Iterator[Wrong]:
    """Yield errors about users of workspaces, and conflicts between two workspaces.

    Each error has the name of a workspace; a conflict has the later of the two names.
    """
    for name, entry in entries.items():
        user = person_of(entry, users)
        if user is None:
            yield name, f"{entry.user!r} is not in workspaces_users; {suggestion(entry.user, users)}"
        elif entry.kind == "ssh" and not user.keys and not user.left:
            yield name, f"{entry.user} has no public key for the login; add keys to workspaces_users"
    for (first, one), (second, other) in combinations(sorted(entries.items()), 2):
        if one.port and one.port == other.port:
            yield second, f"port {one.port} is given twice; {first} has it too"
        both = not_shared(other, other.gpus, one, one.gpus, {})
        if both is not None:
            shared = "to share it, set share: true for both"
            has = "it too" if both[0] == both[1] else f"{both[1]}, and one is a MIG device of the other"
            yield second, f"GPU {both[0]} is given twice: {first} has {has}; {shared}"


def over_limits(entries: Entries, per_user: WorkspaceLimits, per_host: WorkspaceLimits) -> Iterator[Wrong]:
    """Yield exceeded limits, each with the last name among the workspaces that share the limit."""
    for user in sorted({entry.user for entry in entries.values()}):
        theirs = {name: entry for name, entry in entries.items() if entry.user == user}
        yield from _over(theirs, per_user, f"the workspaces of {user}", "workspaces_per_user")
    yield from _over(entries, per_host, "the workspaces of this host", "workspaces_per_host")


def _over(entries: Entries, limits: WorkspaceLimits, whose: str, variable: str) -> Iterator[Wrong]:
    if not entries:
        return
    last = max(entries)
    for field in ("cpus", "memory", "disk"):
        for name, entry in entries.items():
            if getattr(limits, field) is not None and getattr(entry, field) is None:
                yield (
                    name,
                    f"{field} is missing; {variable} limits it, so set it for each workspace",
                )
    gpus = {gpu for entry in entries.values() for gpu in entry.gpus}
    for what, sum_, most in (
        ("workspaces", len(entries), limits.workspaces),
        ("GPUs", len(gpus), limits.gpus),
        ("CPUs", sum(entry.cpus or 0 for entry in entries.values()), limits.cpus),
        ("processes (pids)", sum(entry.pids for entry in entries.values()), limits.pids),
    ):
        if most is not None and sum_ > most:
            yield last, f"{whose} have {sum_:g} {what}, more than {variable} allows ({most:g})"
    for what, size, sizes in (
        ("memory", limits.memory, [entry.memory for entry in entries.values()]),
        ("shared memory (shm)", limits.shm, [entry.shm for entry in entries.values()]),
        ("disk", limits.disk, [entry.disk for entry in entries.values()]),
    ):
        taken = sum(bytes_of(each) for each in sizes if each)
        if size is not None and taken > bytes_of(size):
            yield last, f"{whose} have {taken / 2**30:g} GiB of {what}, more than {variable} allows ({size})"
