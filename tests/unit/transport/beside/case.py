"""One test case for host key verification: configuration files, and the requested host."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """``known`` and ``system`` are the contents of the user's and the system's known_hosts files; ``config`` precedes
    the defaults. ``server`` is one of ``world.SERVERS``, or ``cert-`` and a certificate. ``new``: an unknown key may be
    accepted.
    """

    name: str
    known: str = ""
    config: str = ""
    system: str = ""
    more: str = ""
    host: str = "gpu01.example.org"
    port: int = 0
    server: str = "ed"
    new: bool = False
    raw: bool = False  #: ``known`` is written unchanged, without a final line end
    direct: bool = False  #: over TCP to an sshd on 127.0.0.0/8, whose port is ``<port>``
