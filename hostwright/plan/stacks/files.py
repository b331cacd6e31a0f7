"""Fetches to this machine the files of all stacks that the inventory's hosts use. It contacts no host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from hostwright.common.errors import ArtifactError, InputError, Mistakes
from hostwright.inventory import Host
from hostwright.plan.host.hostfacts import with_python
from hostwright.plan.model import Facts
from hostwright.plan.roles.hostroles import named_roles
from hostwright.plan.stacks.packages import PackageSearch, Seen, find_packages, wanted_packages
from hostwright.plan.targets import Roster
from hostwright.stack.stack import Artifact, RoleFile, Stack
from hostwright.stack.store import mirroring
from hostwright.stack.store.debs import packages_lock
from hostwright.stack.store.exporting import export
from hostwright.stack.store.mirroring import Mirrored, TransferProgress
from hostwright.stack.store.sources import FileSource


def mirror(
    roster: Roster,
    name: str,
    source: FileSource | None,
    to: Path | None,
    *,
    seen: Seen,
    pythons: Sequence[str] = (),
    search: PackageSearch | None = None,
    progress: TransferProgress,
) -> tuple[Mirrored, ...]:
    """Fetch the files for hosts with the stack ``name``, or for all hosts, to this machine.

    Files that ``source`` has are not downloaded. All files are exported to the directory ``to``, if given. ``pythons``
    replaces the hosts' Python versions. ``seen`` returns a host's stored facts. ``search`` has the settings of the
    search for distribution packages.

    Raises ``ArtifactError`` if a file is unknown or an archive lacks a package, and ``InputError`` for a Python version
    for which no host needs files.
    """
    store, files, locks = roster.store, list[Mirrored](), list[Path]()
    stacks = [roster.stack(each) for each in ([name] if name else stacks_of_hosts(roster))]
    further = {stack.name: files_of_roles(roster, stack, seen) for stack in stacks} if not pythons else {}
    for python in pythons:
        assumed = partial(_assumed, with_python(python))
        of_python = {stack.name: files_of_roles(roster, stack, assumed) for stack in stacks}
        if not any(of_python.values()):
            raise InputError(_no_files(python), "--pythons")
        further = {name: (*further.get(name, ()), *files) for name, files in of_python.items()}
    search = search or PackageSearch()
    packages = {
        stack.name: wanted_packages(roster, stack, hosts_having(roster, stack), seen, search.systems)
        for stack in stacks
    }
    failures, lacking = list[str](), list[str]()
    for stack in stacks:
        lock = store.lock_file(stack.name)
        bring = partial(mirroring.mirror, store=store, lock=lock, source=source, progress=progress)
        with _noted(failures):
            files += bring((*artifacts_for_hosts(roster, stack), *further[stack.name]))
        with _noted(failures):
            found = find_packages(roster, stack, packages[stack.name], search, source)
            lacking += found.lacking
            done = bring(found.files) if found.files else ()
            files += [replace(file, pinned=file.name in found.pinned) for file in done]
        locks += [lock, packages_lock(store, stack.name)]
    if failures:
        # An unusable store causes the same failure for every stack.
        raise ArtifactError("\n".join(dict.fromkeys([*failures, *lacking])))
    if to is not None:
        export(files, locks, to, progress)
    if lacking:
        raise ArtifactError("\n".join(lacking))
    return tuple(files)


@contextmanager
def _noted(failures: list[str]) -> Iterator[None]:
    """Append the text of an ``ArtifactError`` to ``failures`` instead of raising it, so that later files are still
    fetched.
    """
    try:
        yield
    except ArtifactError as error:
        failures.append(str(error))


def artifacts_for_hosts(roster: Roster, stack: Stack) -> tuple[Artifact, ...]:
    """The artifacts of ``stack`` that the roles of the hosts with this stack may need.

    If no host has the stack, the roles of all hosts count; in an empty inventory, the stack's default roles.
    """
    having = hosts_having(roster, stack)
    return stack.used_by({role for host in having for role in named_roles(host, stack)} or stack.roles)


def files_of_roles(roster: Roster, stack: Stack, seen: Seen) -> tuple[RoleFile, ...]:
    """The files that hosts with ``stack`` need in addition to the stack's artifacts.

    ``seen`` returns a host's stored facts. Raises ``ArtifactError`` if a host needs an unknown file, and
    ``InputErrors`` with all errors in the variables of these hosts.
    """
    files: dict[str, RoleFile] = {}
    mistakes = Mistakes()
    for host in hosts_having(roster, stack):
        with mistakes:
            target = roster.target(host, check=False)
            roles = roster.with_stack(target, stack).desired.roles
            states = [state for role in roles for state in role.resources]
            if any(state.role_files() for state in states):
                facts = seen(host.name)
                files.update((file.name, file) for state in states for file in state.role_files_for(facts))
    mistakes.refuse()
    return tuple(files.values())


def _assumed(facts: Facts, _host: str) -> Facts:
    return facts


def _no_files(python: str) -> str:
    return (
        f"no host needs files for Python {python}: either no stack of a host has this Python, or their packages do "
        "not come from this machine (set `wheels_from: mirror` in the variables of a role)"
    )


def hosts_having(roster: Roster, stack: Stack) -> tuple[Host, ...]:
    """Return the inventory's hosts with this stack; all hosts if none has it."""
    hosts = tuple(roster.inventory.hosts.values())
    return tuple(host for host in hosts if roster.stack_name(host) == stack.name) or hosts


def stacks_of_hosts(roster: Roster) -> tuple[str, ...]:
    """The names of all hosts' stacks; for an empty inventory, the default stack."""
    names = (roster.stack_name(host) for host in roster.inventory.hosts.values())
    return tuple(dict.fromkeys(names)) or (roster.default_stack,)
