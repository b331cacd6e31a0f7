"""What verbs are given: which hosts, and how they are connected to. Values, and nothing that is slow to import."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Selection:
    """Which hosts of which inventory, with which variables of this call alone, and which of their roles."""

    hosts: str = ""
    inventory: tuple[str, ...] = ()  #: paths and lists of hosts, later ones winning; empty: the default one
    var: tuple[str, ...] = ()  #: KEY=VALUE
    roles: str = ""  #: role names with commas between them; empty: all


@dataclass(frozen=True, slots=True)
class VaultOptions:
    """Where the password of Ansible Vault is; ``ask``: from the operator."""

    password_file: str = ""
    ask: bool = False


#: those of this call: every verb that reads an inventory takes them (``tasks.options.verb``)
VAULT: ContextVar[VaultOptions] = ContextVar("VAULT")
STRICT: ContextVar[bool] = ContextVar("STRICT", default=False)
#: the command that is told of this call's run
NOTIFY: ContextVar[str] = ContextVar("NOTIFY", default="")
#: what commands that are advised (``cli.shell.advice``) take over: the program that was called, its ``--site``, and, by
#: their names, those options of the call that say which hosts it is about and how they are reached
PROGRAM: ContextVar[str] = ContextVar("PROGRAM", default="invoke")
SITE: ContextVar[str] = ContextVar("SITE", default="")
CALL: ContextVar[Mapping[str, str | bool | tuple[str, ...]]] = ContextVar("CALL")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How hosts are connected to."""

    ask_become_pass: bool = False
    accept_new: bool = False
