"""Loads the inventory, selects hosts, and prompts for passwords, as the options of a verb require."""

from __future__ import annotations

import getpass
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from hostwright.cli.shell.completion import names
from hostwright.cli.tasks import settings
from hostwright.cli.views.shared import warn
from hostwright.common.errors import InputError, Mistakes
from hostwright.common.input.nearest import suggestion
from hostwright.common.input.vault import Vault, password_of
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.common.userpaths import expanded
from hostwright.fleet import Fleet, Targets
from hostwright.inventory import Host
from hostwright.inventory.patterns import counted, fold, named_by
from hostwright.inventory.reading.ansible import vault_password_files
from hostwright.plan.roles.role import Role, discover, providers
from hostwright.plan.roles.site import Site


def open_fleet(request: Request, *, mistakes: Mistakes | None = None) -> Fleet:
    """Load the inventory of ``request`` with the variables of the command line, and print notes about the inventory's
    files.

    If ``mistakes`` is given, collect mistakes in the inventory there, and print no notes.
    """
    named = tuple(filter(None, request.inventory or (os.environ.get(names.INVENTORY_VARIABLE, ""),)))
    places = [expanded(name) for name in named] or None
    vault = Vault(lambda: _vault_passwords(request))
    fleet = Fleet.load(places, request, vault=vault, tell=warn, mistakes=mistakes)
    names.remember(fleet.sources, fleet.inventory)
    for note in fleet.inventory.notes if mistakes is None else ():
        warn(note)
    return fleet


def roles_here() -> tuple[Role, ...]:
    """Return the standard roles and, if the working directory is inside a site, the roles of the site."""
    try:
        site = Site.find()
    except InputError:
        return discover()
    return discover(*site.role_packages)


def refuse_strangers(fleet: Fleet) -> None:
    """With ``--strict``, raise ``InputErrors`` for every mistake in the inventory. Call this in verbs that do not
    select hosts.
    """
    if fleet.request.strict and fleet.inventory.hosts:
        fleet.targets("all")


def refuse_unnamed(fleet: Fleet, request: Request) -> None:
    """Raise ``InputError`` if ``request`` selects no hosts, or if the inventory has no hosts."""
    if not request.hosts:
        fleet.select("all", usable=False)
        raise InputError("no hosts are named; pass --hosts gpu01,gpu02, --hosts @group or --hosts all", "--hosts")


def targets_of(fleet: Fleet, request: Request, *, outside: bool = False) -> Targets:
    """Return the hosts that ``request`` selects, with the roles that ``--roles`` allows.

    ``outside`` includes hosts that the site's settings exclude from stacks, for verbs that do not use the stack.
    """
    refuse_unnamed(fleet, request)
    roles = _roles(fleet, request.roles)
    pattern = request.hosts if outside else _inside(fleet, request.hosts)
    targets = fleet.targets(pattern, roles)
    for note in targets.notes:
        warn(note)
    if "!" in request.roles:
        _tell_needed(targets)
    return targets


def _roles(fleet: Fleet, text: str) -> list[str]:
    """Return the roles in the value of ``--roles``, without those after ``!``. If all terms begin with ``!``, return
    all other roles. Raises ``InputError`` if no role remains or a term with ``!`` is unknown.
    """
    known = [role.name for role in fleet.roles]
    given = [name.strip() for name in text.split(",") if name.strip()]
    named = [name for name in given if not name.startswith("!")]
    without = [name[1:].strip() for name in given if name.startswith("!")]
    for name in without:
        if name not in known:
            raise InputError(f"unknown role {name!r}; {suggestion(name, known)}", "--roles")
    left = [name for name in named or known if name not in without] if without else named
    if without and not left:
        raise InputError(f"{text!r} excludes every role", "--roles")
    return left


def _tell_needed(targets: Targets) -> None:
    """Warn about roles that the selected roles need, but that ``--roles`` excludes."""
    found: dict[str, dict[str, None]] = {}
    for target in targets:
        left_out = tuple(role for role in target.of_host if role not in target.roles)
        for role in target.roles:
            for left in (one for need in role.needs for one in providers(need, left_out)):
                found.setdefault(left.name, {})[role.name] = None
    for need, roles in found.items():
        warn(f"--roles excludes {need}, which is needed by {', '.join(roles)}; {need} is not changed on the hosts")


def outside_of(fleet: Fleet, hosts: Iterable[Host]) -> tuple[str, ...]:
    """Return the names of those ``hosts`` that the site's setting ``hosts`` excludes from stacks.

    Raises ``InputError`` for an invalid setting.
    """
    setting = settings.of_site().get("hosts")
    if setting is None:
        return ()
    try:
        inside = {host.name for host in fleet.select(setting.value, usable=False)}
    except InputError as error:
        raise InputError(f"hosts: {error.sentence}", setting.origin) from error
    return tuple(host.name for host in hosts if host.name not in inside)


def _inside(fleet: Fleet, pattern: str) -> str:
    """Return ``pattern`` without the hosts that the site's settings exclude from stacks. Raises ``InputError`` if the
    pattern names such a host, or if no host remains.
    """
    chosen = fleet.select(pattern, usable=False)
    outside = outside_of(fleet, chosen)
    if not outside:
        return pattern
    setting = settings.of_site()["hosts"]
    named = set(outside) & named_by(fleet.inventory, pattern)
    if named or len(outside) == len(chosen):
        who = fold(host for host in outside if not named or host in named)
        raise InputError(
            f"the setting hosts = {setting.value!r} does not include {who}; change the setting, or name other hosts",
            setting.origin,
        )
    warn(f"skipped {counted(outside)}: the setting hosts = {setting.value!r} ({setting.origin}) does not include them")
    return f"{pattern},!{fold(outside)}"


def ask_password(request: Request) -> Secret | None:
    """Prompt for the sudo password if ``--ask-become-pass`` is set; else return ``None``."""
    if not request.ask_become_pass:
        return None
    without = "set ansible_become_password (encrypted with Ansible Vault), or allow sudo without a password"
    return _typed("sudo password: ", "--ask-become-pass", without)


def hosts_at_once(request: Request) -> int:
    """Return the number of hosts that ``--at-once`` sets; 0 if unset. Raises ``InputError`` for an invalid value."""
    text = request.at_once
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) < 10**6:
        raise InputError(f"found {text[:40]!r}, expected a number of hosts, such as 32", "--at-once")
    return int(text)


def _vault_passwords(request: Request) -> Iterator[Secret]:
    if file := request.vault_password_file or os.environ.get("ANSIBLE_VAULT_PASSWORD_FILE", ""):
        yield password_of(file)
    elif not request.ask_vault_password:
        yield from map(password_of, map(str, dict.fromkeys(_configured_passwords())))
    if request.ask_vault_password:
        without = "name a file or a program with --vault-password-file"
        yield _typed("vault password: ", "--ask-vault-password", without)


def _configured_passwords() -> list[Path]:
    try:
        root = Site.find().root
    except InputError:
        return []
    return vault_password_files(root)


def _typed(prompt: str, option: str, without: str) -> Secret:
    with warnings.catch_warnings():
        # getpass would only print this warning, and echo the password
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            password = Secret(getpass.getpass(prompt, stream=sys.stderr))
        except (getpass.GetPassWarning, EOFError) as error:
            what = "no password was typed" if isinstance(error, EOFError) else "no terminal to type the password on"
            raise InputError(f"{what}; {without}", option) from error
    return password
