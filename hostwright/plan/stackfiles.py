"""The files of the stacks of an inventory, brought to this machine. No host is asked."""

from __future__ import annotations

from pathlib import Path

from hostwright.plan.member import Roster
from hostwright.stack.store import mirroring
from hostwright.stack.store.mirroring import Mirrored, TransferProgress


def mirror(roster: Roster, name: str, source: Path | None, progress: TransferProgress) -> tuple[Mirrored, ...]:
    """Bring the files of a stack to this machine; without a name, those of every stack that a host has.

    What is in the directory ``source`` is taken from there. Raises ``ArtifactError``.
    """
    store, files = roster.store, list[Mirrored]()
    for stack in [roster.stack(each) for each in ([name] if name else stacks_of_hosts(roster))]:
        lock = store.lock_file(stack.name)
        files += mirroring.mirror(stack.used_artifacts, store, lock=lock, source_dir=source, progress=progress)
    return tuple(files)


def stacks_of_hosts(roster: Roster) -> tuple[str, ...]:
    """The names of the stacks that hosts of the inventory have; the default one where there is no host."""
    names = (roster.stack_name(host) for host in roster.inventory.hosts.values())
    return tuple(dict.fromkeys(names)) or (roster.default_stack,)
