"""Implementation of ``workspace.up`` and ``workspace.down``: write ``workspaces.yml``, and provision the host."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.text import Text

from hostwright.cli.verb import Request, agree, answered, console, open_fleet, warn
from hostwright.cli.verb import provision as provision_hosts
from hostwright.roles import AS_DESIRED, Command, HostError, InputError, count, printable, short, suggestion
from hostwright.standard.roles.workspaces.verbs.edit import (
    ROLE,
    alone,
    changed_lines,
    checked,
    declared_entry,
    edited,
    once_written,
    place,
    written,
)
from hostwright.standard.roles.workspaces.verbs.giventext import OPTIONS
from hostwright.standard.roles.workspaces.verbs.hostkeys import host_key_of, key_lines
from hostwright.standard.roles.workspaces.verbs.queries import one_workspace

DEFAULT_KIND = "jupyter"
#: task option → inventory field, if the names differ
FIELDS = {option: field for field, option in OPTIONS.items() if option}
#: maximum number of printed lines of a change, and maximum number of characters in a line
_SHOWN_LINES, _SHOWN_CHARACTERS = 40, 400


def entry_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the passed task options as an inventory entry. Raises ``InputError`` for an invalid option."""
    entry: dict[str, Any] = {name: value for name, value in options.items() if value not in ("", None, [], False)}
    if "gpus" in entry:
        numbers = [part.strip() for part in entry["gpus"].split(",") if part.strip()]
        if not numbers:
            raise InputError(f"{entry['gpus']!r} names no GPU; give indexes or UUIDs, such as 0,1", "--gpus")
        entry["gpus"] = [int(number) if number.isdecimal() else number for number in numbers]
    for name in ("cpus", "pids", "port"):
        if name in entry:
            entry[name] = _number(entry[name])
    if entry.get("port") == "auto":
        del entry["port"]
    if "command" in entry:
        try:
            entry["command"] = shlex.split(entry["command"])
        except ValueError as error:
            raise InputError(f"{entry['command']!r} is not a valid command line: {error}", "--command") from error
    if "script" in entry:
        try:
            # Text mode would convert carriage returns.
            entry["script"] = Path(entry["script"]).read_bytes().decode("utf-8")
        except (OSError, UnicodeError) as error:
            raise InputError(f"cannot be read: {error}", entry["script"]) from error
    if "env" in entry:
        pairs = [text.partition("=") for text in entry["env"]]
        if not all(sign for _, sign, _ in pairs):
            raise InputError("expected NAME=VALUE, such as --env TZ=Europe/Berlin", "--env")
        entry["env"] = {name: value for name, _, value in pairs}
    return {FIELDS.get(name, name): value for name, value in entry.items()}


def changed_entry(
    before: Mapping[str, Any] | None, options: Mapping[str, Any], without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the entry ``before`` with the passed ``options``, and without the fields in ``without``.

    Raises ``InputError`` for an invalid option, or without a user.
    """
    taken = [_field(name, options) for name in without]
    entry = {**(before or {}), **entry_of(options)}
    if options.get("port") == "auto":
        taken.append("port")
    for one, other in (("command", "script"), ("script", "command")):
        if options.get(one) and not options.get(other):
            taken.append(other)
    entry = {name: value for name, value in entry.items() if name not in taken}
    if "user" not in entry:
        raise InputError("the user is missing; give a name of workspaces_users", "--user")
    return entry if "kind" in entry else {"user": entry["user"], "kind": DEFAULT_KIND, **entry}


def _field(name: str, options: Mapping[str, Any]) -> str:
    """Return the inventory field for ``name``. Raises ``InputError`` for an option that is not removable, or also
    set.
    """
    option = name.strip().replace("-", "_")
    known = [each for each in options if each not in ("user", "kind")]
    if option not in known:
        raise InputError(f"{name!r} is not a removable option; {suggestion(option, known)}", "--without")
    if options[option] not in ("", [], False):
        raise InputError(f"{name} is both set and removed; leave out one of the two", "--without")
    return FIELDS.get(option, option)


def field_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between the inventory entries ``before`` and ``after``, one per field.

    >>> list(field_changes({"cpus": 8, "gpus": [0]}, {"cpus": 4, "share": True}))
    ['cpus 8 → 4', 'gpus 0 → none', 'share none → yes']
    """
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old != new:
            yield f"{name} {_shown(old)} → {_shown(new)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, Mapping):
        return " ".join(f"{name}={text}" for name, text in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return short(str(value))


def _number(text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return text  # a later check refuses the text
    return int(value) if value.is_integer() else value


def change(
    request: Request,
    name: str,
    entry: Callable[[Mapping[str, Any] | None], Mapping[str, Any]] | None,
    *,
    provision: bool = True,
) -> int:
    """Write the entry of the workspace ``name`` to ``workspaces.yml``, and provision the host if ``provision``.

    ``entry`` receives the present entry or ``None``, and returns the new entry; ``None`` removes the workspace. A
    removal that is provisioned needs confirmation.
    """
    fleet = open_fleet(request)
    hosts = [host.name for host in fleet.select(request.hosts, usable=False)] if request.hosts else []
    if len(hosts) != 1:
        sentence = suggestion(request.hosts, fleet.inventory.hosts) if request.hosts else "such as --host gpu01"
        raise InputError(f"expected exactly one host; {sentence}", "--host")
    (host,) = hosts
    if ROLE not in {role.name for role in fleet.targets(host)[0].roles}:
        sentence = (
            f"{host} does not have the role {ROLE}; add it to the host's list, such as "
            f"hostwright_roles: [base, driver, …, container, {ROLE}]"
        )
        raise InputError(sentence, "hostwright_roles")
    file = place(fleet.path)
    yes = answered(False)
    if entry is None and provision and declared_entry(fleet.path, host, name) is not None:
        what = f"removes {name} from {host}"
        agree(f"`workspace.down` {what}", [f"{what}; its files are kept"], 1, yes=request.yes, as_json=request.json)
        yes = True
    with alone(fleet.path):
        was = declared_entry(fleet.path, host, name)
        wanted = entry(was) if entry is not None else None
        before, after = edited(fleet.path, host, name, wanted)
        declared = checked(fleet.path, host, after).containers.get(name)
        written(fleet.path, before, after)
    with once_written(fleet.path):
        show_written(file, before, after, quiet=request.json)
        if was is not None and wanted is not None and (fields := list(field_changes(was, wanted))):
            sentence = f"{name} changes: {', '.join(fields)}; other fields are kept"
            _say(sentence, quiet=request.json)
        for sentence in declared.cautions(name) if declared else ():
            warn(sentence)
        if not provision:
            return 0
        chosen = replace(request, hosts=host, roles=ROLE, yes=yes)
        status = provision_hosts(chosen)
        if status != AS_DESIRED:
            down = Command("workspace.down", host=host, name=name) if entry is not None else None
            say_what_stays(file, name, down, Command("provision", hosts=host, roles=ROLE))
        elif wanted is not None and wanted.get("kind") == "ssh":
            _say_host_key(chosen, name, quiet=request.json)
        elif wanted is None and was is not None and was.get("kind") == "ssh":
            sentence = (
                f"{name}: its SSH host key was removed, too; a new box of this name gets another key, and ssh warns"
            )
            _say(sentence, quiet=request.json)
        return status


def _say_host_key(request: Request, name: str, *, quiet: bool) -> None:
    target, space = one_workspace(request, name)
    try:
        for line in key_lines(space, host_key_of(target, space)):
            _say(line, quiet=quiet)
    except HostError as error:  # the SSH container is provisioned, even if its host key cannot be read
        warn(f"the SSH host key of workspace {name} cannot be read: {error}")


def _say(sentence: str, *, quiet: bool) -> None:
    console.make_console(stderr=quiet).print(Text(printable(sentence)))


def say_what_stays(path: Path, what: str, down: Command | None, again: Command) -> None:
    """Print that the file ``path`` is written but not applied to the host, and how to continue. ``down`` reverts an
    addition; ``again`` repeats a removal.
    """
    lines = [f"{path} no longer declares {what}; fix the cause, then run {again}"]
    if down:
        lines = [
            f"{path} still declares {what}; fix the cause, then run the same command again",
            f"(or remove it: {down})",
        ]
    for line in lines:
        _say(line, quiet=True)


def show_written(path: Path, before: str, after: str, *, quiet: bool) -> None:
    """Print the lines removed from and added to the file ``path``."""
    out = console.make_console(stderr=quiet)
    lines = list(changed_lines(before, after))
    out.print(Text(printable(f"{path}: {'written' if lines else 'says so already'}")))
    for line in lines[:_SHOWN_LINES]:
        cut = line if len(line) <= _SHOWN_CHARACTERS else f"{line[:_SHOWN_CHARACTERS]}… ({len(line):,} characters)"
        out.print(console.Quoted(f"  {printable(cut)}"))
    if len(lines) > _SHOWN_LINES:
        out.print(Text(f"  … and {count(len(lines) - _SHOWN_LINES, 'line')} more"))
    sys.stdout.flush()
