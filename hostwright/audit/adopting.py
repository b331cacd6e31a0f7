"""Read hosts that were set up by hand, and write one stack file for each group of equal hosts.

No host is changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hostwright.apply.rollout.connections import Connections
from hostwright.apply.rollout.rollout import Results, on_each
from hostwright.audit.auditing import now
from hostwright.audit.found.adopting import HostFound, StackDraft, draft, nearest, stack_text
from hostwright.audit.found.reading import finders_of
from hostwright.common.errors import HostError, InputError
from hostwright.common.places import plain_name, refused, write_whole
from hostwright.common.untrusted import guarded
from hostwright.plan.host import release
from hostwright.plan.host.hostfacts import HOST_PROBES, read_host
from hostwright.plan.observing import ask
from hostwright.plan.probing import ordered
from hostwright.plan.roles.role import rules_of
from hostwright.plan.stacks.fits import fits
from hostwright.plan.stacks.listing import list_stacks
from hostwright.plan.targets import Roster, Targets
from hostwright.stack.ages import day_of
from hostwright.stack.fitting import Misfit
from hostwright.stack.rules import check_host, check_stack
from hostwright.stack.stack import Stack, safe_stack_name
from hostwright.stack.stackfile import load_stack

FILE_MODE = 0o644


@dataclass(frozen=True, slots=True)
class AdoptedStack:
    """A new stack for a group of equal hosts, as a difference from the existing stack ``extends``.

    ``file`` is ``None`` if the hosts match that stack exactly. ``misfits`` are the rules of that stack that the hosts
    violate.
    """

    hosts: tuple[str, ...]
    stack: str
    extends: str
    file: Path | None
    text: str
    left_out: tuple[tuple[str, str], ...]  #: pairs of a role that the stack omits and the reason
    notes: tuple[str, ...] = ()
    misfits: tuple[Misfit, ...] = ()


@dataclass(frozen=True, slots=True)
class Adoption:
    """Result of ``adopt``: stacks (of the largest group first), hosts that were already provisioned, and errors."""

    stacks: tuple[AdoptedStack, ...]
    provisioned: tuple[tuple[str, str], ...]  #: pairs of a host and the stack that the release record of the host names
    errors: tuple[HostError, ...]


@dataclass(frozen=True, slots=True)
class _Read:
    host: str
    found: HostFound | None = None
    draft: StackDraft | None = None
    provisioned: str = ""


def adopt(
    roster: Roster, targets: Targets, connections: Connections, *, name: str = "", replace_file: bool = False
) -> Adoption:
    """Read the hosts ``targets``, and write one stack file into the site for each group of equal hosts.

    ``name`` is the name of the new stack; by default, it is made of the names of the nearest stack and the first host.
    Raises ``InputError`` if ``name`` is invalid or given for several stacks. Raises ``InputError`` also if a file
    exists, unless ``replace_file`` is set.
    """
    if name and not safe_stack_name(name):
        raise InputError(f"{name!r:.80} is not a valid stack name; use letters, digits, '.', '_' and '-'", "--name")
    if name:
        _refuse_existing([roster.own_stacks[0] / f"{name}.yml"], replace_file=replace_file)
    results = _read_each(roster, targets, connections)
    groups: dict[tuple[str, str], list[_Read]] = {}
    for read in results.values:
        if read.draft:
            groups.setdefault((read.draft.extends, repr(read.draft.data)), []).append(read)
    ranked = sorted(groups.values(), key=lambda members: -len(members))
    if name and len(ranked) > 1:
        sentence = f"these hosts differ and need {len(ranked)} stacks; omit --name, or select fewer hosts"
        raise InputError(sentence, "--name")
    made, failed = list[AdoptedStack](), list(results.errors)
    for members in ranked:
        try:
            made.append(_made(roster, members, name))
        except HostError as error:
            failed += [HostError(read.host, error.sentence) for read in members]
    _write(made, replace_file=replace_file)
    provisioned = tuple((read.host, read.provisioned) for read in results.values if read.provisioned)
    return Adoption(tuple(made), provisioned, tuple(failed))


def _read_each(roster: Roster, targets: Targets, connections: Connections) -> Results[_Read]:
    by_name, today, finders = targets.by_name, day_of(None), finders_of(roster.roles)
    stacks = tuple(listed.stack for listed in list_stacks(roster) if listed.stack)
    probes = ordered((*HOST_PROBES, release.RELEASE, *finders.probes))

    def of_host(name: str) -> _Read:
        with connections.connect(by_name[name]) as shell:
            facts = ask(shell, probes)
        with guarded(name):
            if record := release.read(facts):
                return _Read(name, provisioned=str(record.get("stack", "")))
            found = HostFound(name, read_host(facts), finders.on_host(facts))
            order = fits(found.facts, stacks, roster.roles, roster.advisories, today, suggest=False)
            like = nearest(found, stacks, finders, order)
        if like is None:
            raise HostError(name, "found no valid stack to start from; run `hostwright stacks` for the reasons")
        return _Read(name, found, draft(found, like, roster.roles))

    return on_each(tuple(by_name), of_host, stop=connections.close)


def _made(roster: Roster, members: Sequence[_Read], name: str) -> AdoptedStack:
    """Create the stack of equal hosts without writing it. Raises ``HostError`` if the stack is invalid."""
    first = members[0]
    if first.draft is None or first.found is None:
        raise TypeError("only hosts with a draft are grouped")
    made, hosts = first.draft, tuple(read.host for read in members)
    left_out = tuple(made.left_out.items())
    if not made.data:
        return AdoptedStack(hosts, made.extends, made.extends, None, "", left_out, made.notes)
    called = name or f"{made.extends}-{plain_name(first.host)}"
    text = stack_text(made, hosts, now().date())
    stack = _loaded(roster, called, text, first.host)
    rules = rules_of(role for role in roster.roles if role.name in stack.roles)
    if unfit := check_stack(stack, rules):
        raise HostError(first.host, f"the draft stack is invalid: {'; '.join(map(str, unfit))}")
    misfits = tuple(check_host(stack, first.found.facts, rules))
    file = roster.own_stacks[0] / f"{called}.yml"
    return AdoptedStack(hosts, called, made.extends, file, text, left_out, made.notes, misfits)


def _loaded(roster: Roster, name: str, text: str, host: str) -> Stack:
    with tempfile.TemporaryDirectory(prefix="hostwright-adopt-") as folder:
        (Path(folder) / f"{name}.yml").write_text(text, "utf-8")
        try:
            return load_stack(name, (Path(folder), *roster.stack_dirs), roster.kinds)
        except InputError as error:
            raise HostError(host, f"the draft stack is invalid: {str(error).replace(folder, '')}") from error


def _write(made: Sequence[AdoptedStack], *, replace_file: bool) -> None:
    """Write the files of all stacks in ``made``. Raises ``InputError``, and writes none, if a file exists and
    ``replace_file`` is not set.
    """
    files = [(one.file, one.text) for one in made if one.file]
    _refuse_existing([file for file, _ in files], replace_file=replace_file)
    for file, text in files:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(file, text.encode(), FILE_MODE)
        except OSError as error:
            raise InputError(f"cannot be written: {refused(error)}", str(file)) from error


def _refuse_existing(files: Sequence[Path], *, replace_file: bool) -> None:
    there = [str(file) for file in files if file.exists() or file.is_symlink()]
    if there and not replace_file:
        raise InputError(f"already exists: {', '.join(there)}; pass --replace, or another --name", "adopt")
