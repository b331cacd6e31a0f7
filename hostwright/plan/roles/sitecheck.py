"""Checks all files of a site: inventory, roles, stacks, templates, checks. It contacts no host.

``python -m hostwright.plan.roles.sitecheck`` writes the JSON schema of the result (``check.schema.json``).
"""

from __future__ import annotations

import ast
import json
import pkgutil
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hostwright.common.errors import InputError, InputErrors, Mistakes, described
from hostwright.common.input.adapter import json_schema_of
from hostwright.common.input.yamlfile import read_text
from hostwright.common.templates import mistakes_in
from hostwright.inventory import Host, bind, fold
from hostwright.inventory.reading.dynamic import ProgramFailed
from hostwright.plan.roles.hostroles import host_roles
from hostwright.plan.roles.listing import strangers_noted
from hostwright.plan.roles.role import PARTS, Role, place_of, rules_of
from hostwright.plan.roles.site import OWN_ROLES, STANDARD, Site
from hostwright.plan.targets import Roster, TargetHost
from hostwright.stack.rules import never_applied
from hostwright.stack.stackfile import stack_names

SCHEMA: Literal[1] = 1
SCHEMA_FILE = Path(__file__).with_name("check.schema.json")
_PLACE = re.compile(r"(.*?)(?::(\d+))?(?::(\d+))?")
#: part of the text of errors about values that need a vault password
_ENCRYPTED = "is encrypted with Ansible Vault"
#: part of the text of errors about unknown template variables
_UNKNOWN = "is not a variable"


@dataclass(frozen=True, slots=True)
class SiteRemark:
    """A sentence about a position in a site's file. ``line`` and ``column`` count from 1; 0 if unknown."""

    sentence: str
    #: path of the file, relative to the site if possible
    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = ":".join([self.file, *(str(number) for number in (self.line, self.column) if number)])
        return f"{place}: {self.sentence}" if self.file else self.sentence


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """The result of checking a site.

    ``mistakes`` are errors that make hosts unusable. ``unread`` are remarks about files that could not be checked.
    ``notes`` are remarks about unusual input that may be intended.
    """

    schema: Literal[1]
    site: str
    hosts: int
    roles: tuple[str, ...]
    stacks: tuple[str, ...]  #: names of the site's own stacks, and of the stacks that the site's hosts have
    mistakes: tuple[SiteRemark, ...]
    unread: tuple[SiteRemark, ...]
    notes: tuple[SiteRemark, ...]


def check_site(roster: Roster, found: Mistakes) -> SiteCheck:
    """Check all files of the site of ``roster``.

    ``found`` has the errors from reading the site's inventory and roles.
    """
    hosts = tuple(roster.inventory.hosts.values())
    own = tuple(role for role in roster.roles if role.function.__module__.startswith(OWN_ROLES))
    stacks: dict[str, None] = {}
    if roster.roles:  # An unreadable role leaves ``roster.roles`` empty, and would cause further errors.
        stacks = _check_stacks(roster, hosts, found)
        _check_roles(roster, own, found)
        _gather(found, _no_roles(roster.site.root / "roles", {role.folder.resolve() for role in roster.roles}))
        _check_hosts(roster, hosts, found)
    _gather(found, mistakes_in(roster.site.root / "templates"))
    _gather(found, (error for error in _unparsable(_programs(roster.site)) if str(error) not in map(str, found.found)))
    known = tuple(map(str, found.found))
    left_out = roster.inventory.left_out  # Errors in ``known`` may already include errors in ``left_out``.
    _gather(found, (error for error in left_out if not any(text.startswith(str(error)) for text in known)))
    locked = _ENCRYPTED in "".join((*map(str, found.found), *roster.inventory.notes)) and not roster.vault.known
    closed = [error for error in found.found if locked and (_ENCRYPTED in str(error) or _UNKNOWN in str(error))]
    unread = [error for error in found.found if isinstance(error, ProgramFailed)]
    mistakes = [error for error in found.found if error not in closed and error not in unread]
    notes = [note for note in roster.inventory.notes if not note.startswith(tuple(map(str, left_out)))]
    noted = (*notes, *(() if roster.request.strict else strangers_noted(hosts, roster.binder)))
    root = roster.site.root
    return SiteCheck(
        SCHEMA,
        str(root),
        len(hosts),
        tuple(role.name for role in own),
        tuple(stacks),
        tuple(_remark(error, root) for error in mistakes),
        tuple(_remark(error, root) for error in unread),
        (
            *(SiteRemark(_from(root, note)) for note in noted),
            *(_remark(error, root, " (not checked without its password)") for error in closed),
        ),
    )


def _check_stacks(roster: Roster, hosts: Iterable[Host], found: Mistakes) -> dict[str, None]:
    names = dict.fromkeys(stack_names(folder for folder in roster.stack_dirs if folder != STANDARD / "stacks"))
    for host in hosts:
        with found:
            names[roster.stack_name(host)] = None
    known = stack_names(roster.stack_dirs)
    for name in names:
        if name in known:  # The check of the host reports an unknown name with the line in the file.
            with found:
                host_roles(Host(name), roster.stack(name), roster.roles)
    with found:
        roster.stack(roster.default_stack)
    return names


def _check_roles(roster: Roster, own: Iterable[Role], found: Mistakes) -> None:
    for role in own:
        for name in PARTS:
            with found:
                role.part(name)
    with found:
        every = rules_of(roster.roles)
        sections = [name for name, section in roster.kinds.items() if section is not None]
        names = {role.name for role in own}
        for rule in (rule for role in every if role.role in names for rule in role.rules):
            _gather(found, never_applied(rule, every, sections))
    with found:
        # The names of failures must be unique across roles.
        roster.knowledge.check_failures(roster)


def _no_roles(folder: Path, roles: Collection[Path]) -> Iterator[InputError]:
    for info in pkgutil.iter_modules([str(folder.resolve())]):
        place = folder.resolve() / (info.name if info.ispkg else f"{info.name}.py")
        if place not in roles and not info.name.startswith("_"):
            shown = folder / info.name / "__init__.py" if info.ispkg else folder / f"{info.name}.py"
            yield InputError(
                "has no @role function; if the file is not a role, begin the file's name with '_'", str(shown)
            )


def _check_hosts(roster: Roster, hosts: Iterable[Host], found: Mistakes) -> None:
    failed: dict[tuple[str, str, str], list[str]] = {}
    for host in hosts:
        with found:
            if host.mistakes:
                raise InputErrors(list(host.mistakes))
            try:
                target = roster.target(host)
            except InputError:
                _check_variables(roster, host, found)
                raise
            for role in target.roles:
                with found:
                    if error := _fails(role, target):
                        what = (role.name, described(error), place_of(error, str(role.folder)))
                        failed.setdefault(what, []).append(host.name)
    for (name, why, place), names in failed.items():
        with found:
            raise InputError(f"the role {name} fails for {fold(names)}: {why}", place)


def _check_variables(roster: Roster, host: Host, found: Mistakes) -> None:
    """Check a host's variables for all known roles: if the host's stack is invalid, the host's own roles are
    unknown.
    """
    for role in roster.roles:
        with found:
            bind(role.variables, role.name, host)


def _fails(role: Role, target: TargetHost) -> BaseException | None:
    """Return the exception that ``role`` raises for ``target``.

    An ``InputError`` is raised and not returned, because it already names file and line.
    """
    variables = target.variables[role.name]
    try:
        for state in role.resources(variables, target.context):
            state.probes()
            state.removal()
        role.audit_values(variables, target.context)
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - a user's file may raise anything, even SystemExit
        return error
    return None


def _programs(site: Site) -> Iterator[Path]:
    yield site.root / "tasks.py"
    if len(site.role_packages) > 1:
        yield from sorted((site.root / "roles").rglob("*.py"))
    yield from sorted(site.checks.rglob("*.py"))


def _unparsable(files: Iterable[Path]) -> Iterator[InputError]:
    for file in (file for file in files if file.is_file()):
        try:
            ast.parse(read_text(file), str(file))
        except InputError as error:
            yield error
        except (SyntaxError, ValueError) as error:
            yield InputError(described(error), place_of(error, str(file)))


def _gather(found: Mistakes, errors: Iterable[InputError]) -> None:
    for error in errors:
        with found:
            raise error


def _remark(error: InputError, root: Path, more: str = "") -> SiteRemark:
    place = error.where or ""
    match = _PLACE.fullmatch(place)
    file, line, column = match.groups() if match else (place, None, None)
    return SiteRemark(_from(root, error.sentence) + more, _from(root, file), int(line or 0), int(column or 0))


def _from(root: Path, text: str) -> str:
    return text.replace(f"{root}/", "")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the output of ``hostwright check --json``."""
    return json_schema_of(SiteCheck, "Hostwright check", "What `hostwright check --json` prints.")


if __name__ == "__main__":
    SCHEMA_FILE.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
