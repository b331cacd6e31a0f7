"""Generator of the reference page for variables: those of roles, and those that belong to no role."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hostwright.common.text import markdown
from hostwright.inventory.connection import VARIABLES as OF_CONNECTIONS
from hostwright.plan.roles.meanings import meanings
from hostwright.plan.roles.role import Role

DOCUMENT = "docs/reference/variables.md"

INTRO = """\
# Variables

*For operators who write an inventory, and need a variable, its values or its default.*

A variable of a role is written flat (`base_packages: [...]`) or in the role's mapping (`base: {packages: [...]}`), in
the inventory, `group_vars/` or `host_vars/`. [Variables](../operators/inventory.md#variables) explains which definition
wins. `hostwright vars gpu01 --why` shows the variables of a host, with file and line of every definition. Versions and
files are not variables: they are in the [stack](../operators/stacks.md). Every secret variable `NAME` may be replaced
by `NAME_command`, a [command that prints the secret](../settings.md#secrets).

This page is written by `python -m hostwright.cli.shell.reference` from the roles.
"""

#: heading → variable of Hostwright itself → meaning of the variable in Markdown
OWN: Mapping[str, Mapping[str, str]] = {
    "Stack and roles of a host": {
        "stack": "the [stack](../operators/stacks.md) of the host; without it, the site's or the standard default",
        "hostwright_stack": "the same, with precedence over `stack`, which other tools may use with another meaning",
        "hostwright_roles": "the roles of the host, instead of the roles of its stack",
        "hostwright_own_variables": "names of your own variables that resemble a role's, so that no note is shown",
        "hostwright_secrets": "names of your own variables that are secrets, so that they are never shown",
    },
    "How a host gets its files": {
        "artifacts": "`pull` (default): the host [fetches the stack's files](../operators/files.md) by HTTP from this "
        "machine or from another host; `push`: this machine sends them over SSH; `direct`: the host downloads them "
        "from their vendors",
        "hostwright_files_address": "the address of this machine from which the host fetches (default: the source "
        "address of its SSH connection)",
        "hostwright_files_port": "the TCP port for that, or a range such as `8470-8479` (default: any free port)",
        "hostwright_peer_group": "a name, such as a rack's: hosts fetch only from hosts of their group (default: all "
        "hosts of the run)",
        "hostwright_peer_uploads": "number of other hosts that may fetch from the host at a time (default: 2); `0`: "
        "none",
        "hostwright_peer_rate": "limit for all of its uploads together, in megabytes per second (default: no limit)",
        "hostwright_peer_port": "the TCP port of its uploads, or a range (default: any free port)",
    },
    "How a host is reached": {
        "hostwright_known_hosts": "a file with the host's key, instead of `~/.ssh/known_hosts` and the system's file",
        "hostwright_connect_timeout": "time limit for a connection, in seconds (default: 15)",
        "hostwright_password": "the password of the SSH login; a secret",
        "hostwright_become_password": "the password for sudo; a secret",
        "hostwright_sudo": "the absolute path of a [sudo](../operators/inventory.md) outside the usual places",
    },
    "Work on a host, and reboots": {
        "hostwright_drain": "a command that [drains the host](../operators/rollouts.md#reboots-and-hosts-in-use)",
        "hostwright_undrain": "a command that accepts jobs on the host again",
        "hostwright_drain_on": "`controller` (default) or `host`: where both commands run",
        "hostwright_drain_timeout": "time limit for draining, and again for the jobs on the host (default: 1h)",
        "hostwright_reboot_timeout": "time limit for a reboot of the host (default: 30m)",
    },
    "Plans that are signed": {
        "hostwright_plan_signers": "a file in the site with [the keys that may sign saved "
        "plans](../operators/provision.md#plan)",
        "hostwright_plan_key": "the key with which this machine signs saved plans",
    },
    "What a host should have, and prove": {
        "hostwright_gpus": "the number of GPUs of the host; with fewer, `audit`, `doctor` and `verify` fail",
        "hostwright_gpu_model": "the name of its GPUs, or a list of names",
        "hostwright_prove_max_loss": "the accepted loss of a measurement of "
        "[a proof](../prove.md) against its baseline (default: 10%)",
    },
    "Power and reinstallation": {
        "hostwright_bmc": "the address of its [BMC](../rebuild.md#power), `https://…`",
        "hostwright_bmc_user": "the user of the BMC",
        "hostwright_bmc_password": "the BMC's password; a secret",
        "hostwright_bmc_ca": "a file with the authority of the BMC's certificate, or the certificate itself",
        "hostwright_bmc_system": "the Redfish system, if the BMC has several",
        "hostwright_bmc_timeout": "time limit for one command, in seconds (default: 120)",
        "hostwright_bmc_console": "how to open the console, as free text",
        "hostwright_bmc_insecure": "`true`: allow plain HTTP",
        "hostwright_host_keys": "a command that prints the [host's keys](../rebuild.md#identity), read from its "
        "console",
        "hostwright_install": "a mapping: how Hostwright [reinstalls the host](../rebuild.md#reinstall)",
        "hostwright_reinstall": "a mapping: the site's own command for a reinstallation",
    },
}

_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def document(roles: Iterable[Role]) -> str:
    """Return the reference page for the variables of these roles, as Markdown."""
    return "\n".join(_parts(tuple(roles)))


def _parts(roles: tuple[Role, ...]) -> Iterator[str]:
    yield INTRO
    yield "## Of roles\n"
    yield from (_role(role) for role in roles if dataclasses.fields(role.variables))
    for title, rows in OWN.items():
        yield f"## {title}\n"
        yield _table(("variable", "meaning"), ((f"`{name}`", meaning) for name, meaning in rows.items()))
    yield "## Ansible's\n"
    names = ", ".join(f"`{name}`" for name in sorted(OF_CONNECTIONS) if name.startswith("ansible_"))
    yield f"These connection variables of Ansible are read, with the same meaning as in Ansible: {names}.\n"


def _role(role: Role) -> str:
    sentence = (inspect.getdoc(role.function) or "").partition("\n")[0]
    parts = [f"### `{role.name}`\n", f"{markdown(sentence)}\n", _fields(role.variables, f"{role.name}_")]
    for name, hint in typing.get_type_hints(role.variables).items():
        for cls in (cls for cls in _entries(hint) if any(meanings(cls).values())):
            parts += [f"Each entry of `{role.name}_{name}` has these fields:\n", _fields(cls, "")]
    return "\n".join(parts)


def _fields(cls: type, prefix: str) -> str:
    known, hints = meanings(cls), typing.get_type_hints(cls)
    rows = (
        (f"`{prefix}{one.name}`", _kind(hints[one.name]), _default(one), markdown(known.get(one.name, "")))
        for one in dataclasses.fields(cls)
    )
    return _table(("variable", "value", "default", "meaning"), rows)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *(tuple(cell.replace("|", r"\|") for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _kind(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _KINDS:
        return _KINDS[hint]
    if origin is typing.Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_kind(one) for one in arguments if one is not types.NoneType))
    if origin is tuple:
        return f"list of {_kind(arguments[0])}"
    return "mapping"


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    if value is dataclasses.MISSING or value is None or value == "" or dataclasses.is_dataclass(value):
        return ""
    return f"`{json.dumps(value, default=str)}`"


def _entries(hint: Any) -> Iterator[type]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for one in typing.get_args(hint):
        yield from _entries(one)
