"""The files of the stacks of an inventory, brought to this machine. No host is asked."""

from __future__ import annotations

from pathlib import Path

from hostwright.plan.member import Roster
from hostwright.plan.roles.hostroles import named_roles
from hostwright.stack.stack import Artifact, Stack
from hostwright.stack.store import mirroring
from hostwright.stack.store.exporting import export
from hostwright.stack.store.mirroring import Mirrored, TransferProgress
from hostwright.stack.store.sources import FileSource


def mirror(
    roster: Roster, name: str, source: FileSource | None, to: Path | None, progress: TransferProgress
) -> tuple[Mirrored, ...]:
    """Bring the files of a stack that hosts need to this machine; without a name, those of all stacks of hosts.

    What ``source`` has is taken from there; ``to`` is a directory into which all of them are exported. Raises
    ``ArtifactError``.
    """
    store, files, locks = roster.store, list[Mirrored](), list[Path]()
    for stack in [roster.stack(each) for each in ([name] if name else stacks_of_hosts(roster))]:
        lock, artifacts = store.lock_file(stack.name), artifacts_for_hosts(roster, stack)
        files += mirroring.mirror(artifacts, store, lock=lock, source=source, progress=progress)
        locks.append(lock)
    if to is not None:
        export(files, locks, to, progress)
    return tuple(files)


def artifacts_for_hosts(roster: Roster, stack: Stack) -> tuple[Artifact, ...]:
    """The artifacts of a stack that the roles of the hosts with this stack may need.

    A stack that no host has yet is looked at as if all had it; without any host, its own roles count.
    """
    hosts = tuple(roster.inventory.hosts.values())
    having = [host for host in hosts if roster.stack_name(host) == stack.name] or hosts
    return stack.used_by({role for host in having for role in named_roles(host, stack)} or stack.roles)


def stacks_of_hosts(roster: Roster) -> tuple[str, ...]:
    """The names of the stacks that hosts of the inventory have; the default one where there is no host."""
    names = (roster.stack_name(host) for host in roster.inventory.hosts.values())
    return tuple(dict.fromkeys(names)) or (roster.default_stack,)
