"""The route to a host: its own server and the jump hosts before it, fully resolved, with nothing opened yet."""

from __future__ import annotations

from dataclasses import replace

from hostwright.common.errors import InputError, Unreachable
from hostwright.common.userpaths import expanded
from hostwright.transport.exchange import Target
from hostwright.transport.options import Options
from hostwright.transport.routing import sshconfig
from hostwright.transport.routing.sshconfig import Destination, Endpoint

_MAX_HOPS = 8


def endpoint_of(host: Target, options: Options) -> Endpoint:
    """The host's SSH server as inventory and ``ssh_config`` describe it. Raises ``Unreachable`` if they are invalid."""
    try:
        return _endpoint(host, options)
    except InputError as error:
        raise Unreachable(host.name, str(error)) from error


def _endpoint(host: Target, options: Options) -> Endpoint:
    """The host's own endpoint: the inventory wins over ``ssh_config``."""
    destination = Destination(host.address or host.name, host.user or "", host.port or 0)
    endpoint = sshconfig.resolve(destination, options.shared.ssh_config, options.ssh_config)
    if host.known_hosts:
        endpoint = replace(endpoint, known_hosts=(expanded(host.known_hosts),))
    if host.proxy_jump:
        endpoint = replace(endpoint, proxy_jump=sshconfig.hops(host.proxy_jump), proxy_command="")
    return endpoint


def jumps_of(host: Target, endpoint: Endpoint, options: Options) -> list[Endpoint]:
    """The jump hosts on the way to the host's server, the nearest first. Raises ``Unreachable``, as above."""
    try:
        return _chain(endpoint, options)
    except InputError as error:
        raise Unreachable(host.name, str(error)) from error


def _chain(endpoint: Endpoint, options: Options, depth: int = 0) -> list[Endpoint]:
    """All jump hosts on the way, the nearest first; the first one may have jump hosts of its own in ``ssh_config``."""
    if depth > _MAX_HOPS:
        raise InputError(f"the jump hosts of {endpoint.address} lead in a circle")
    chain: list[Endpoint] = []
    for position, text in enumerate(endpoint.proxy_jump):
        jump = sshconfig.resolve(sshconfig.hop(text), options.shared.ssh_config, options.ssh_config)
        if (jump.address, jump.port) == (endpoint.address, endpoint.port):
            continue  # a `Host *` stanza also applies to the jump host itself
        jump = replace(jump, known_hosts=tuple(dict.fromkeys(endpoint.known_hosts + jump.known_hosts)))
        if position == 0:
            chain += _chain(jump, options, depth + 1)
        chain.append(jump)
    return chain
