"""Reads the host key of a server without logging in, over the same jump hosts as a session."""

from __future__ import annotations

import fabric

from hostwright.transport.connecting import FAILURES, Opening
from hostwright.transport.exchange import Target
from hostwright.transport.identity.certificates import SUFFIX
from hostwright.transport.identity.keys import HostKey
from hostwright.transport.identity.negotiating import make_transport, wanted
from hostwright.transport.options import Options


def scan_key(target: Target, options: Options) -> HostKey:
    """Return the key that the host's server proves to hold by a key exchange. The key is not verified.

    If the server has several keys, this is the key that a session would receive. Raises ``Unreachable`` if the
    connection fails within the connect timeout (``HostKeyMismatch`` for the key of a jump host).
    """
    opening = Opening(target, options)
    with opening.way() as (via, _):
        try:
            return _ask(opening, via)
        except FAILURES as error:
            raise opening.failed(error, opening.endpoint) from error


def _ask(opening: Opening, via: fabric.Connection | None) -> HostKey:
    sock = opening.dial(opening.endpoint, via)
    try:
        known = opening.check(opening.endpoint, sock, jump=False).known("ORDER")
        algorithms = wanted(opening.endpoint.trust, known)
        # Certificates are not requested, because ``trust`` records the plain host key.
        plain = [name for name in algorithms if not name.endswith(SUFFIX)]
        transport = make_transport(plain, opening.deadline, opening.allowance, sock)
        try:
            transport.start_client(timeout=max(opening.deadline.left_s(), 0.001))
            return transport.shown
        finally:
            transport.close()
    finally:
        sock.close()
