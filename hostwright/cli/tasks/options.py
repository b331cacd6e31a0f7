"""What the options that several verbs have mean, in the words of ``invoke --help VERB``; and how a task ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec

from invoke import Exit

P = ParamSpec("P")

#: options that mean the same to every verb
HELP: Mapping[str, str] = {
    "hosts": "which hosts: gpu01,gpu[03-09],@group,!gpu05,~regex, or all",
    "inventory": "another inventory than inventory/: a directory, a file, or a program that answers --list",
    "var": "a variable for this run, KEY=VALUE; may be given several times",
    "roles": "only these layers (and nothing that they need): cuda,cudnn",
    "json": "print one JSON document and nothing else",
    "ask_become_pass": "ask once for the sudo password",
    "accept_new": "write down the keys of hosts that are not known yet (a changed key is always an error)",
    "check": "only show what would be done",
    "drain": "where a GPU is in use: take work off the host (hostwright_drain), and wait for its end",
    "force": "change hosts whose GPUs are in use as well, ending what uses them",
    "canary": "so many hosts (or 10%) go first; if one of them fails, the others stay untouched",
    "batch": "so many hosts (or 10%) at once; as soon as one is done, the next begins",
    "max_fail": "stop starting hosts after more than N (or N%) have failed or were unreachable",
    "no_sudo": "do not use sudo; root-only checks are reported as not read",
    "since": "how far back: 7d, 12w (default: all)",
}
NAMED = ("hosts", "inventory", "json")
REACHED = (*NAMED, "ask_become_pass", "accept_new")  #: of verbs that connect to hosts
WANTED = (*REACHED, "var", "roles")  #: and know what they shall be
CHANGING = (*WANTED, "drain", "force", "canary", "batch", "max_fail")  #: and change them


def helps(*common: str, **own: str) -> dict[str, str]:
    """The help of a verb's options: those of ``HELP``, and its own, which win; ``from_`` stands for ``--from``."""
    return {name.rstrip("_"): text for name, text in {**{one: HELP[one] for one in common}, **own}.items()}


def ends(body: Callable[P, int]) -> Callable[P, None]:
    """A task of a function that returns an exit status: errors are told, and Invoke ends with the status."""

    @wraps(body)
    def task_body(*args: P.args, **kwargs: P.kwargs) -> None:
        from hostwright.cli.exits import run

        status = run(lambda: body(*args, **kwargs))
        if status:
            raise Exit(code=status)

    return task_body
