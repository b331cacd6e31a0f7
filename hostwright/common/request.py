"""What the operator asked for: one value, from the words of a call to the code that reads a field.

A verb's options are parsed into it, a run's journal keeps it, ``--resume`` replaces fields of it. A field carries its
name, type, default and help text once: Invoke's options, the reference page, the schema of ``hostwright.toml`` and
completion are made of the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from hostwright.common.errors import InputError

T = TypeVar("T")
_OPTION = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """How a field of the request is given as an option. ``default`` is the field's; that of a repeatable option is
    ``()``."""

    help: str
    default: Any
    group: str = ""  #: of options that the same verbs take (``group_of``)
    settable: Literal["everywhere", "environment", "never"] = "everywhere"  #: where a default of one's own may stand
    is_path: bool = False  #: in ``hostwright.toml``, a path from the folder of that file
    recorded: bool = False  #: in the journal of a run, from which ``--resume`` takes it
    repeated: bool = False  #: in the commands that are printed, so that they work as printed
    optional_value: bool = False  #: it may stand without a value, which is ``True`` then
    choices: tuple[str, ...] = ()  #: all values that it may have; empty: any

    @property
    def kind(self) -> type:
        """The type of its value: ``bool``, ``int``, ``str``, or ``list`` for a repeatable option."""
        return list if isinstance(self.default, tuple) else type(self.default)


def option(default: T, text: str, **how: Any) -> T:
    """A field of the request with its default and help text; ``how`` are the other fields of ``Option``."""
    made: T = field(default=default, metadata={_OPTION: Option(text, default, **how)})
    return made


@dataclass(frozen=True, slots=True)
class Request:
    """One call of a verb. Of an option that the verb does not have, it holds the default. Passwords are not in it."""

    hosts: str = option(
        "",
        "which hosts: gpu01,gpu[03-09],@group,!gpu05,~regex or all; ^FILE: those that a file lists, ^-: standard input",
        settable="never",
        recorded=True,
        repeated=True,
    )
    roles: str = option(
        "",
        "only these roles, without those that they need: base,driver; or all but one: '!NAME'",
        recorded=True,
        repeated=True,
        group="wanted",
    )
    var: tuple[str, ...] = option(
        (), "set a variable for this run, KEY=VALUE; repeatable", recorded=True, repeated=True, group="wanted"
    )
    inventory: tuple[str, ...] = option(
        (),
        "the inventory (default: inventory/): a directory, a file, a program that answers --list, or h1,h2,; "
        "repeatable, later ones win",
        is_path=True,
        repeated=True,
        group="read",
    )
    vault_password_file: str = option(
        "",
        "a file with the password of Ansible Vault, or a program that prints it",
        is_path=True,
        repeated=True,
        group="read",
    )
    ask_vault_password: bool = option(False, "prompt for the password of Ansible Vault", repeated=True, group="read")
    strict: bool = option(
        False,
        "end with 2 if a host cannot be provisioned, or has a variable that only looks like a role's",
        group="read",
    )
    json: bool = option(False, "print a single JSON document and nothing else")
    ask_become_pass: bool = option(False, "prompt once for the sudo password", repeated=True, group="connected")
    accept_new: bool = option(
        False,
        "accept and record the keys of unknown hosts (a changed key is always an error)",
        recorded=True,
        group="connected",
    )
    check: bool = option(False, "only show what would be done; change nothing")
    drain: bool = option(
        False,
        "if a GPU is in use, drain the host (hostwright_drain) and wait until its work has ended",
        recorded=True,
        group="changing",
    )
    force: bool = option(
        False,
        "change hosts even if their GPUs are in use, killing the processes that use them",
        settable="environment",
        recorded=True,
        group="changing",
    )
    yes: bool = option(
        False,
        "go on without being asked whether hosts may be disturbed or lose something",
        settable="environment",
        recorded=True,
        group="provision",
    )
    no_reboot: bool = option(
        False, "leave a needed reboot pending; the next plan shows it again", recorded=True, group="provision"
    )
    keep_drained: bool = option(
        False,
        "leave drained hosts drained when they are as desired, so that you can test them before work comes back",
        recorded=True,
        group="provision",
    )
    canary: str = option(
        "", "start with N (or N%) hosts; if any of them fails, do not touch the others", recorded=True, group="gradual"
    )
    batch: str = option(
        "",
        "work on at most N (or N%) hosts at a time; start the next as soon as one is done",
        recorded=True,
        group="gradual",
    )
    max_fail: str = option(
        "",
        "stop starting hosts after more than N (or N%) have failed or were unreachable",
        recorded=True,
        group="gradual",
    )
    executor: Literal["", "local", "dask"] = option(
        "",
        "who works on the hosts: local (this machine), or dask (the workers of a Dask cluster)",
        recorded=True,
        choices=("local", "dask"),
        group="provision",
    )
    scheduler: str = option(
        "",
        "the address of the Dask cluster's scheduler: tls://HOST:8786 (tcp:// sends no secrets)",
        recorded=True,
        group="provision",
    )
    prove: Literal["", "quick", "full"] = option(
        "",
        "then run the proofs of this level, quick or full; a host whose proofs do not pass has failed",
        recorded=True,
        choices=("quick", "full"),
        group="provision",
    )
    plan: str = option(
        "",
        "apply exactly this saved plan, or nothing if the host changed since it was saved",
        settable="never",
        group="provision",
    )
    resume: str | bool = option(
        "",
        "continue a run: its unfinished hosts, with its options and new plans; without a RUN, the last one that "
        "left hosts which no later run worked on",
        settable="never",
        optional_value=True,
        group="provision",
    )
    timeline: str = option(
        "",
        "write a page to this file, however the run ends: what was done when on each host, and what its end waited for",
        group="provision",
    )
    notify: str = option(
        "", "a command for /bin/sh that gets the run as JSON at its end, and at its first failure", group="changing"
    )
    no_sudo: bool = option(False, "do not use sudo; root-only checks are reported as not read")
    since: str = option("", "how far back: 7d, 12w (default: all)")
    details: bool = option(False, "show everything of each host")
    at_once: str = option("", "how many hosts at a time (default: as many connections as this machine can open)")
    limit: int = option(20, "how many of the latest ones to show; 0 shows all")
    own: Mapping[str, object] = field(default_factory=dict)  #: the verb's own options, as the journal keeps them

    def __post_init__(self) -> None:
        """Raise ``InputError`` for a value that an option cannot have."""
        for name, each in OPTIONS.items():
            if each.choices and (value := getattr(self, name)) and value not in each.choices:
                raise InputError(f"found {value!r:.40}, expected {' or '.join(each.choices)}", f"--{name}")

    def variables(self) -> dict[str, str]:
        """``--var KEY=VALUE`` as a mapping. Raises ``InputError``."""
        pairs = [pair.lstrip().partition("=") for pair in self.var]
        for key, sign, _ in pairs:
            if not sign or not key:
                raise InputError(f"expected KEY=VALUE, found {key!r}", "--var")
        return {key: value for key, _, value in pairs}

    def recorded(self, **more: object) -> dict[str, Any]:
        """The options that were given, with ``more`` of the verb's own, as JSON values for the journal."""
        given = {name: getattr(self, name) for name, each in OPTIONS.items() if each.recorded}
        values = {**given, "var": list(self.var), **self.own, **more}
        return {name: value for name, value in values.items() if value not in ("", None, False, [])}


#: the options that fields of the request are, by name
OPTIONS: Mapping[str, Option] = {
    each.name: each.metadata[_OPTION] for each in fields(Request) if _OPTION in each.metadata
}


def group_of(name: str) -> tuple[str, ...]:
    """The options of a group."""
    return tuple(option for option, each in OPTIONS.items() if each.group == name)
