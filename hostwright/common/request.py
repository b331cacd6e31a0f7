"""The options of one call of a Hostwright verb.

The journal of a run stores these options as a request, and ``--resume`` changes a stored request. Each field of
``Request`` declares name, type, default and help text once, for Invoke's options, the reference page,
``hostwright.toml`` and shell completion.
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
    """Declaration of one command-line option of ``Request``. ``default`` is ``()`` for a repeatable option."""

    help: str
    default: Any
    group: str = ""  #: name of a group of options that several verbs share
    #: places in which a user can change the default of the option
    settable: Literal["everywhere", "environment", "never"] = "everywhere"
    #: whether the value is a path. In ``hostwright.toml``, a relative path starts at the directory of that file.
    is_path: bool = False
    #: whether ``--resume`` uses the value from the journal of the run
    recorded: bool = False
    #: whether commands that messages recommend must repeat the option
    repeated: bool = False
    optional_value: bool = False  #: whether the option may be given without a value; the value is then ``True``
    choices: tuple[str, ...] = ()  #: valid values of the option; empty if any value is valid

    @property
    def kind(self) -> type:
        """The type of the option's value: ``bool``, ``int``, ``str``, or ``list`` for a repeatable option."""
        return list if isinstance(self.default, tuple) else type(self.default)


def option(default: T, text: str, **how: Any) -> T:
    """Declare a field of ``Request`` with its default and help text. ``how`` sets further fields of ``Option``."""
    made: T = field(default=default, metadata={_OPTION: Option(text, default, **how)})
    return made


@dataclass(frozen=True, slots=True)
class Request:
    """The options of one call of a verb, without passwords. Options of other verbs keep their defaults."""

    hosts: str = option(
        "",
        "hosts: gpu01,gpu[03-09],@group,!gpu05,~regex or all; ^FILE reads them from a file, ^- from standard input",
        settable="never",
        recorded=True,
        repeated=True,
    )
    roles: str = option(
        "",
        "only these roles, without their dependencies: base,driver; or all but one: '!NAME'",
        recorded=True,
        repeated=True,
        group="wanted",
    )
    var: tuple[str, ...] = option(
        (), "set a variable for this run, KEY=VALUE; repeatable", recorded=True, repeated=True, group="wanted"
    )
    inventory: tuple[str, ...] = option(
        (),
        "inventory (default: inventory/): a directory, a file, a program with --list, or h1,h2,; "
        "repeatable, the last one wins",
        is_path=True,
        repeated=True,
        group="read",
    )
    vault_password_file: str = option(
        "",
        "a file with the Ansible Vault password, or a program that prints it",
        is_path=True,
        repeated=True,
        group="read",
    )
    ask_vault_password: bool = option(False, "prompt for the Ansible Vault password", repeated=True, group="read")
    strict: bool = option(
        False,
        "exit with 2 if a host cannot be provisioned, or has a variable that resembles a role's but is not one",
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
        "if a GPU is in use, drain the host (hostwright_drain) and wait until its jobs have ended",
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
        "do not ask for confirmation before disturbing hosts or deleting something permanently",
        settable="environment",
        recorded=True,
        group="provision",
    )
    no_reboot: bool = option(
        False, "leave a needed reboot pending; the next plan shows it again", recorded=True, group="provision"
    )
    keep_drained: bool = option(
        False,
        "keep drained hosts drained once they are as desired, so that you can test them before jobs start again",
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
        "start no further hosts after more than N (or N%) have failed or were unreachable",
        recorded=True,
        group="gradual",
    )
    executor: Literal["", "local", "dask"] = option(
        "",
        "where the work on hosts runs: local (this machine), or dask (the workers of a Dask cluster)",
        recorded=True,
        choices=("local", "dask"),
        group="provision",
    )
    scheduler: str = option(
        "",
        "address of the Dask scheduler: tls://HOST:8786 (no secrets are sent over tcp://)",
        recorded=True,
        group="provision",
    )
    prove: Literal["", "quick", "full"] = option(
        "",
        "afterwards run the proofs of this level, quick or full; a host that does not pass them has failed",
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
        "continue a run: its unfinished hosts, with its options and new plans; without RUN, the latest run with "
        "unfinished hosts that no later run worked on",
        settable="never",
        optional_value=True,
        group="provision",
    )
    timeline: str = option(
        "",
        "write an HTML timeline to this file, even if the run fails: the steps of each host, and the critical path",
        group="provision",
    )
    notify: str = option(
        "", "a command for /bin/sh that receives the run as JSON, at its end and at its first failure", group="changing"
    )
    no_sudo: bool = option(False, "do not use sudo; root-only checks are reported as not read")
    since: str = option("", "maximum age: 7d, 12w (default: all)")
    details: bool = option(False, "show all details of each host")
    at_once: str = option("", "number of hosts at a time (default: as many connections as this machine can open)")
    limit: int = option(20, "number of latest entries to show; 0 shows all")
    #: values of the options that only this verb has
    own: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ``InputError`` if the value of an option is not one of the option's ``choices``."""
        for name, each in OPTIONS.items():
            if each.choices and (value := getattr(self, name)) and value not in each.choices:
                raise InputError(f"found {value!r:.40}, expected {' or '.join(each.choices)}", f"--{name}")

    def variables(self) -> dict[str, str]:
        """Return name → value from the options ``--var KEY=VALUE``. Raises ``InputError`` for any other form."""
        pairs = [pair.lstrip().partition("=") for pair in self.var]
        for key, sign, _ in pairs:
            if not sign or not key:
                raise InputError(f"expected KEY=VALUE, found {key!r}", "--var")
        return {key: value for key, _, value in pairs}

    def recorded(self, **more: object) -> dict[str, Any]:
        """Return the given options that the journal stores, and the options in ``more``, as JSON values."""
        given = {name: getattr(self, name) for name, each in OPTIONS.items() if each.recorded}
        values = {**given, "var": list(self.var), **self.own, **more}
        return {name: value for name, value in values.items() if value not in ("", None, False, [])}


OPTIONS: Mapping[str, Option] = {
    each.name: each.metadata[_OPTION] for each in fields(Request) if _OPTION in each.metadata
}


def group_of(name: str) -> tuple[str, ...]:
    """Return the names of all options in the option group ``name``."""
    return tuple(option for option, each in OPTIONS.items() if each.group == name)
