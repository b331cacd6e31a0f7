"""Confirmation from another source that a host presents its genuine host key.

The sources in order are a fingerprint from the operator, the host's console, and a question to the operator. The first
available source decides. If this source refuses the key, the later sources are not queried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hostwright.apply.disturb import hooks
from hostwright.common.errors import InputError, InputErrors, Refused
from hostwright.common.input.validation import describe, unknown_name
from hostwright.common.text import shown_limit
from hostwright.inventory import Host
from hostwright.transport.identity.hostkeys import KnownHost
from hostwright.transport.identity.keys import HostKey, parse_many

VARIABLE = "hostwright_host_keys"
#: time limit in seconds for the command that reads a console; a login at a BMC takes tens of seconds
TIMEOUT_S = 120.0
YES = "yes"  #: answer that the operator must type in full to trust a host key
_ALIKE = "hostwright_host_key"  #: prefix of variable names that are probably misspellings of ``hostwright_host_keys``
#: pattern for a key's fingerprint in the format of ``ssh-keygen -l``
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
#: pattern for Ansible templates in a value; Hostwright does not evaluate these templates
_TEMPLATE = re.compile(r"\{\{\s*(inventory_hostname|ansible_)\w*.*?\}\}")

GIVEN = "the fingerprint that was given"
CONSOLE = f"the host's console ({VARIABLE})"
OPERATOR = "the operator's answer"


@dataclass(frozen=True, slots=True)
class Confirmed:
    """Confirmed keys of a host, the presented key first. ``source`` is ``GIVEN``, ``CONSOLE`` or ``OPERATOR``."""

    keys: tuple[HostKey, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources that confirm a host key: a fingerprint, a command that prints the console's keys, and a question to the
    operator.

    An empty source or ``None`` is not available.
    """

    fingerprint: str = ""
    console: str = ""
    ask: Callable[[str], str] | None = None


def read_fingerprint(text: str) -> str:
    """Return ``text`` from the command line. Raises ``InputError`` if it is not a SHA-256 fingerprint of a key."""
    if not _FINGERPRINT.fullmatch(text):
        raise InputError(
            f"found {text[:80]!r}, expected SHA256: and 43 characters, as the host's console shows it "
            "(`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`)",
            "--fingerprint",
        )
    return text


def read_console_command(host: Host) -> str:
    """Command in the inventory that prints the public keys of ``host``, read from the console; may be empty.

    Raises ``InputError`` with all invalid variables.
    """
    given = {name: value for name in host.vars if name.startswith(_ALIKE) and (value := host.get(name)) is not None}
    wrong = {name: sentence for name, value in given.items() if (sentence := _wrong(name, value))}
    mistakes = [InputError(f"{name}: {sentence}", host.vars[name].origin.exact) for name, sentence in wrong.items()]
    if mistakes:
        raise mistakes[0] if len(mistakes) == 1 else InputErrors(mistakes)
    return str(given.get(VARIABLE, ""))


def _wrong(name: str, value: Any) -> str:
    if name != VARIABLE:
        return unknown_name(name, (VARIABLE,))
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return f"found {describe(value)}, expected a command for /bin/sh that prints the host's public keys"
    if template := _TEMPLATE.search(value):
        return f"found the template {template[0]!r}, which is not rendered here; use $HOSTWRIGHT_HOST"
    return ""


def confirm(host: Host, offered: HostKey, before: Sequence[KnownHost], sources: Sources) -> Confirmed:
    """Check whether ``offered``, the key that a host presents, is genuine. ``before`` are the host's recorded keys.

    Raises ``Refused`` with both fingerprints if the key is not genuine or no source is available.
    """
    if sources.fingerprint:
        if sources.fingerprint != offered.fingerprint:
            raise Refused(
                host.name,
                f"you gave the fingerprint {sources.fingerprint}, but the host presents {offered}; "
                f"{_written(before)}. Read the fingerprint of its {offered.key_type} key on its console: if it is not "
                "the presented one, someone may be between you and the host. Nothing was changed",
            )
        return Confirmed((offered,), GIVEN)
    if sources.console:
        keys = console_keys(host, sources.console)
        if offered not in keys:
            console = ", ".join(map(str, keys))
            raise Refused(
                host.name,
                f"the host presents {offered}, but its console shows {console}; {_written(before)}. Someone may be "
                f"between you and the host, or {VARIABLE} queries the wrong host. Nothing was changed",
            )
        return Confirmed(tuple(dict.fromkeys((offered, *keys))), CONSOLE)
    return _asked(host, offered, before, sources.ask)


def console_keys(host: Host, command: str) -> tuple[HostKey, ...]:
    """Run ``command`` on this machine to query the console of ``host``; return the printed public keys.

    Raises ``Refused`` if the command fails, or if its output is not a list of keys.
    """
    environment = {"HOSTWRIGHT_HOST": host.name, "HOSTWRIGHT_ADDRESS": host.address or host.name}
    ended = hooks.run_here(command, environment, TIMEOUT_S)
    otherwise = "correct it, or give the fingerprint (--fingerprint SHA256:…). Nothing was changed"
    if ended.status != 0:
        how = (
            f"did not end within {shown_limit(TIMEOUT_S)}"
            if ended.status is None
            else f"ended with status {ended.status}"
        )
        output = f": {ended.lines[-1][:200]}" if ended.lines else " and printed nothing"
        raise Refused(host.name, f"the command of {VARIABLE} {how}{output}; {otherwise}")
    try:
        keys = parse_many("\n".join(ended.lines))
    except ValueError as error:
        raise Refused(
            host.name, f"the command of {VARIABLE} printed something other than keys ({error}); {otherwise}"
        ) from error
    if not keys:
        raise Refused(host.name, f"the command of {VARIABLE} printed no key; {otherwise}")
    return keys


def _asked(host: Host, offered: HostKey, before: Sequence[KnownHost], ask: Callable[[str], str] | None) -> Confirmed:
    facts = f"the host presents {offered}; {_written(before)}"
    if ask is None:
        raise Refused(
            host.name,
            f"{facts}. Only its console can confirm that: give the fingerprint shown there (--fingerprint SHA256:…), "
            f"set {VARIABLE} to a command that prints its keys, or answer in a terminal. "
            "Nothing was changed",
        )
    answer = ask(f"{host.name}: {facts}\nIs that the fingerprint on the host's console? Type {YES} to trust it: ")
    if answer.strip() != YES:
        raise Refused(host.name, f"the answer was not {YES}: {facts}. Nothing was changed")
    return Confirmed((offered,), OPERATOR)


def _written(before: Sequence[KnownHost]) -> str:
    if not before:
        return "no key is recorded for it"
    return "recorded: " + ", ".join(f"{key.key_type} {key.fingerprint} ({key.where})" for key in before)
