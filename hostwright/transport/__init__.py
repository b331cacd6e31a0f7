"""Connections to hosts: opens sessions, runs commands in them, and reports why a connection failed.

A host is reached over SSH, or is the machine that runs Hostwright (``local``). Only this package imports Fabric and
paramiko, at the first connection.
"""

from __future__ import annotations

from hostwright.transport.exchange import LOCAL, Allowance, Output, Target
from hostwright.transport.options import Options
from hostwright.transport.session import Session
from hostwright.transport.streams import Readable

__all__ = ["LOCAL", "Allowance", "Options", "Output", "Readable", "Session", "Target", "connect", "import_all"]


def connect(target: Target, options: Options, allowance: Allowance | None = None) -> Session:
    """Open a session on ``target``. Close the session, or use it as a context manager.

    All connections of a run to one host share an ``allowance``, a limit of the data from the host. Raises
    ``ProtocolError`` if the allowance is used up, and ``Unreachable`` if the connection fails within the connect
    timeout (``HostKeyMismatch`` for a changed host key).
    """
    if target.connection == LOCAL:
        from hostwright.transport.local import open_local

        return open_local(target)
    from hostwright.transport.connecting import open_session

    return open_session(target, options, allowance)


def import_all() -> None:
    """Import Fabric and paramiko, so that child processes that are forked later share the modules."""
    import hostwright.transport.connecting  # noqa: F401
