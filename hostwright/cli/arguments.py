"""What verbs are given: which hosts, and how they are connected to. Values, and nothing that is slow to import."""

from __future__ import annotations

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
#: the ``--inventory`` of this call, for the commands that it advises, and its ``--strict``
INVENTORY: ContextVar[tuple[str, ...]] = ContextVar("INVENTORY", default=())
STRICT: ContextVar[bool] = ContextVar("STRICT", default=False)
#: the command that is told of this call's run
NOTIFY: ContextVar[str] = ContextVar("NOTIFY", default="")


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How hosts are connected to."""

    ask_become_pass: bool = False
    accept_new: bool = False
