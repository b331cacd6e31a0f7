"""Makes the ``ssh`` command line with which an operator logs in to a host, using Hostwright's settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from hostwright.common.errors import InputError, Unreachable
from hostwright.common.quoting import words
from hostwright.common.userpaths import expanded
from hostwright.transport.exchange import Target
from hostwright.transport.options import Options
from hostwright.transport.routing import route, sshconfig
from hostwright.transport.routing.openssh import Destination


def ssh_command(target: Target, options: Options, command: str = "", *, terminal: bool = False) -> tuple[str, ...]:
    """Return the arguments of ``ssh`` to log in to ``target``, or to run ``command`` in the host's login shell.

    ssh fails for an unknown host key, and prompts for the password. ``terminal`` requests a terminal for a command.
    Raises ``Unreachable`` for an invalid inventory or ``ssh_config``.

    >>> from types import SimpleNamespace
    >>> given = dict(name="gpu01", address="192.0.2.11", port=2222, user="ops", key_file=None, known_hosts=None)
    >>> more = dict(proxy_jump=None, connect_timeout=None, host_keys=None)
    >>> " ".join(ssh_command(SimpleNamespace(**given, **more), Options()))
    'ssh -o StrictHostKeyChecking=yes -l ops -p 2222 -- 192.0.2.11'
    """
    strict = route.endpoint_of(target, options).trust.strict  # This call also rejects names that ssh would split.
    accept = (target.host_keys or options.host_keys) == "accept-new" and not strict
    given = route.config_of(options)
    ssh = ["ssh", *(["-F", str(given)] if given else [])]
    ssh += ["-o", f"StrictHostKeyChecking={'accept-new' if accept else 'yes'}"]
    call = [*ssh, *Destination(target.name, target.user or "", target.port or 0).options]
    if target.key_file:
        call += ["-o", _files("IdentityFile", (expanded(target.key_file),)), "-o", "IdentitiesOnly=yes"]
    if target.known_hosts:
        call += ["-o", _files("UserKnownHostsFile", (expanded(target.known_hosts),)), "-o", "GlobalKnownHostsFile=none"]
    if target.connect_timeout:
        call += ["-o", f"ConnectTimeout={math.ceil(target.connect_timeout)}"]
    if target.proxy_jump:
        hops = sshconfig.hops(target.proxy_jump)
        try:
            call += ["-o", f"ProxyCommand={_proxy(ssh, hops, target, options)}" if hops else "ProxyJump=none"]
        except InputError as error:
            raise Unreachable(target.name, str(error)) from error
    call += ["-t"] if terminal else []
    return (*call, "--", target.address or target.name, *([command] if command else []))


def _proxy(ssh: Sequence[str], hops: Sequence[str], target: Target, options: Options) -> str:
    """Return a ``ProxyCommand`` through ``hops``.

    ``ssh -J`` would not pass the known_hosts file to the jump hosts, and would prompt for unknown keys.
    """
    *before, last = hops
    jump = sshconfig.hop(last)
    call = [*ssh, *jump.options]
    endpoint = sshconfig.resolve(jump, route.config_of(options), options.shared.openssh)
    if target.known_hosts:
        call += ["-o", _files("UserKnownHostsFile", (expanded(target.known_hosts), *endpoint.known_hosts))]
    if before:
        call += ["-o", f"ProxyCommand={_proxy(ssh, before, target, options)}"]
    line = words(tuple(call)).replace("%", "%%")  # ssh replaces each %% in a ProxyCommand by %.
    return f"{line} -W '[%h]:%p' -- {words((jump.alias,))}"


def _files(setting: str, files: Sequence[Path]) -> str:
    escaped = (str(path).replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"') for path in dict.fromkeys(files))
    return f"{setting}=" + " ".join(f'"{path}"' for path in escaped)
