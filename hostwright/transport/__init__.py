"""The way to one host: open a session, run commands over it, and know how it failed.

By SSH, or by processes where the host is this machine (``local``). This package is the only importer of Fabric and
paramiko, and imports them at the first connection, not before.
"""

from __future__ import annotations

from hostwright.transport.exchange import LOCAL, Allowance, Output, Target
from hostwright.transport.options import Options
from hostwright.transport.session import Session
from hostwright.transport.streams import Readable

__all__ = ["LOCAL", "Allowance", "Options", "Output", "Readable", "Session", "Target", "connect", "import_all"]


def connect(target: Target, options: Options, allowance: Allowance | None = None) -> Session:
    """Open a session to ``target``; close it, or use it as a context manager.

    All connections of a run to this host share an ``allowance``. Raises ``ProtocolError`` where it is spent, and
    ``Unreachable`` (``HostKeyMismatch`` for a changed host key) with one sentence, at the latest after the
    connect timeout.
    """
    if target.connection == LOCAL:
        from hostwright.transport.local import open_local

        return open_local(target)
    from hostwright.transport.connecting import open_session

    return open_session(target, options, allowance)


def import_all() -> None:
    """Import what the first connection would: for a process whose children connect, each of which would import it."""
    import hostwright.transport.connecting  # noqa: F401
