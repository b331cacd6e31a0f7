"""Help texts of the options that several verbs share, as ``invoke --help VERB`` shows them; and how a task ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec

from invoke import Exit

from hostwright.cli.arguments import INVENTORY, STRICT, VAULT, VaultOptions

P = ParamSpec("P")

#: options that mean the same to every verb
HELP: Mapping[str, str] = {
    "hosts": "which hosts: gpu01,gpu[03-09],@group,!gpu05,~regex or all",
    "inventory": "the inventory (default: inventory/): a directory, a file, a program that answers --list, or h1,h2,; "
    "repeatable, later ones win",
    "vault_password_file": "a file with the password of Ansible Vault, or a program that prints it",
    "ask_vault_password": "prompt for the password of Ansible Vault",
    "var": "set a variable for this run, KEY=VALUE; repeatable",
    "roles": "only these roles, without those that they need: base,driver",
    "json": "print a single JSON document and nothing else",
    "ask_become_pass": "prompt once for the sudo password",
    "accept_new": "accept and record the keys of unknown hosts (a changed key is always an error)",
    "check": "only show what would be done; change nothing",
    "drain": "if a GPU is in use, drain the host (hostwright_drain) and wait until its work has ended",
    "force": "change hosts even if their GPUs are in use, killing the processes that use them",
    "yes": "agree that what the plan calls lost for good is lost, instead of being asked",
    "canary": "start with N (or N%) hosts; if any of them fails, do not touch the others",
    "batch": "work on at most N (or N%) hosts at a time; start the next as soon as one is done",
    "max_fail": "stop starting hosts after more than N (or N%) have failed or were unreachable",
    "no_sudo": "do not use sudo; root-only checks are reported as not read",
    "strict": "end with 2 if a host cannot be provisioned, or has a variable that only looks like a role's",
    "since": "how far back: 7d, 12w (default: all)",
}
FILE, ASK, STRICTLY = "vault_password_file", "ask_vault_password", "strict"
READ = ("inventory", FILE, ASK, STRICTLY)  #: of verbs that read an inventory
READERS: Mapping[str, object] = {FILE: "", ASK: False, STRICTLY: False}  #: which ``ends`` adds, with their defaults
NAMED = ("hosts", *READ, "json")
REACHED = (*NAMED, "ask_become_pass", "accept_new")  #: of verbs that connect to hosts
WANTED = (*REACHED, "var", "roles")  #: and know what is wanted of them
CHANGING = (*WANTED, "drain", "force", "canary", "batch", "max_fail")  #: and change them


def helps(*common: str, **own: str) -> dict[str, str]:
    """The help of a verb's options: those of ``HELP``, and its own, which win; ``from_`` stands for ``--from``."""
    return {name.rstrip("_"): text for name, text in {**{option: HELP[option] for option in common}, **own}.items()}


def ends(body: Callable[P, int]) -> Callable[P, None]:
    """A task of a function that returns an exit status: errors are printed, and Invoke ends with the status.

    One that takes an inventory also takes the options of Ansible Vault and ``--strict``, the same everywhere.
    """
    asked = signature(body)

    @wraps(body)
    def task_body(*args: P.args, **kwargs: P.kwargs) -> None:
        status = copy_context().run(_call, body, args, kwargs)
        if status:
            raise Exit(code=status)

    if "inventory" in asked.parameters:
        more = [Parameter(name, Parameter.KEYWORD_ONLY, default=none) for name, none in READERS.items()]
        whole = asked.replace(parameters=[*asked.parameters.values(), *more])
        task_body.__signature__ = whole  # type: ignore[attr-defined]
    return task_body


def _call(body: Callable[..., int], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """The exit status of a task; what ``ends`` added is known as long as it lasts."""
    from hostwright.cli.exits import run

    VAULT.set(VaultOptions(kwargs.pop(FILE, ""), kwargs.pop(ASK, False)))
    STRICT.set(kwargs.pop(STRICTLY, False))
    INVENTORY.set(tuple(filter(None, kwargs.get("inventory") or ())))
    return run(lambda: body(*args, **kwargs))
