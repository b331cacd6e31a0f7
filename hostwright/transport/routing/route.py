"""Determines the route to a host: its SSH server and the jump hosts, with all settings resolved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hostwright.common.errors import InputError, Unreachable
from hostwright.common.userpaths import expanded
from hostwright.transport.exchange import Target
from hostwright.transport.options import Options
from hostwright.transport.routing import sshconfig
from hostwright.transport.routing.openssh import Destination
from hostwright.transport.routing.sshconfig import Endpoint

_MAX_HOPS = 8


def endpoint_of(target: Target, options: Options) -> Endpoint:
    """Return the SSH server of ``target``. Raises ``Unreachable`` if the inventory or ``ssh_config`` is invalid."""
    try:
        return _endpoint(target, options)
    except InputError as error:
        raise Unreachable(target.name, str(error)) from error


def _endpoint(target: Target, options: Options) -> Endpoint:
    destination = Destination(target.address or target.name, target.user or "", target.port or 0)
    endpoint = sshconfig.resolve(destination, config_of(options), options.shared.openssh)
    if target.known_hosts:
        endpoint = _with_own_file(endpoint, expanded(target.known_hosts))
    if target.proxy_jump:
        endpoint = replace(endpoint, proxy_jump=sshconfig.hops(target.proxy_jump), proxy_command="")
    return endpoint


def config_of(options: Options) -> Path | None:
    """The file that replaces the user's and the system's ``ssh_config``, or ``None``."""
    return expanded(options.ssh_config) if options.ssh_config else None


def _with_own_file(endpoint: Endpoint, path: Path) -> Endpoint:
    """Use ``path`` instead of the user's and the system's ``known_hosts`` files. Keys that those files revoke are still
    refused.
    """
    others = (*endpoint.known_hosts, *endpoint.system_known_hosts)
    return replace(endpoint, known_hosts=(path,), system_known_hosts=(), revoking=others)


def jumps_of(target: Target, endpoint: Endpoint, options: Options) -> list[Endpoint]:
    """Return the jump hosts on the route to the host's server ``endpoint``, the nearest to this machine first.

    Raises ``Unreachable`` for an invalid configuration.
    """
    try:
        return _chain(endpoint, options, expanded(target.known_hosts) if target.known_hosts else None)
    except InputError as error:
        raise Unreachable(target.name, str(error)) from error


def _chain(endpoint: Endpoint, options: Options, also: Path | None, depth: int = 0) -> list[Endpoint]:
    """Return the jump hosts on the route to ``endpoint``, the nearest to this machine first.

    Jump hosts use the inventory's ``known_hosts`` file ``also`` in addition to their own files.
    """
    if depth > _MAX_HOPS:
        raise InputError(f"the jump hosts of '{endpoint.address}' form a loop; correct ProxyJump in ssh_config")
    chain: list[Endpoint] = []
    for position, text in enumerate(endpoint.proxy_jump):
        jump = sshconfig.resolve(sshconfig.hop(text), config_of(options), options.shared.openssh)
        if (jump.address, jump.port) == (endpoint.address, endpoint.port):
            continue  # A ProxyJump for ``Host *`` also names the jump host as its own jump host.
        if also:
            jump = replace(jump, known_hosts=tuple(dict.fromkeys((also, *jump.known_hosts))))
        if position == 0:
            chain += _chain(jump, options, also, depth + 1)
        chain.append(jump)
    return chain
