"""Finds the startup files of a login shell that print something before each command.

Hostwright ignores such output, but scp, rsync and other programs may fail, so a note names the files.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hostwright.common.errors import Unreachable
from hostwright.common.quoting import sh_file
from hostwright.common.text import printable
from hostwright.common.untrusted import Pattern

if TYPE_CHECKING:
    from hostwright.transport.session import Session

_LIMIT_S = 5  #: time limit in seconds for running one startup file of a login shell (our choice)
_TIMEOUT_S = 60.0
_CAP_BYTES = 4096
#: pattern for an error that glibc's loader prints before each program (elf/rtld.c)
_PRELOAD = Pattern(r"ERROR: ld\.so: object '[^'\n]{1,300}' from [^\s]{1,100}")
_SHOWN = 60  #: maximum number of characters of a login shell's output in a note


def noise_note(session: Session) -> str:
    """Return a note about output of the login shell before each command; empty without such output.

    The note shows the output, and names the shell startup files that print it.
    """
    if session.noise and not session.noise_note:
        script = sh_file(__file__, "startfiles.sh", limit_s=_LIMIT_S)
        lines: list[str] = []
        with suppress(Unreachable):
            output = session.run("/bin/sh", stdin=script.encode(), timeout_s=_TIMEOUT_S, cap_bytes=_CAP_BYTES)
            lines = printable(output.stdout.decode("utf-8", errors="replace")).splitlines()
        session.noise_note = _sentence(session.noise, lines)
    return session.noise_note


def _sentence(noise: bytes, lines: list[str]) -> str:
    """Return the note about the output ``noise``. ``lines`` are the login shell and the startup files that print it.

    >>> _sentence(b"Welcome to gpu01\\n", ["/bin/bash", "~/.bashrc"])
    'its login shell (/bin/bash) prints "Welcome to gpu01" before each command, from ~/.bashrc; Hostwright ignores \
    this output, but scp and rsync may fail: print only in interactive shells'
    """
    if match := _PRELOAD.search(noise.decode("utf-8", errors="replace")):
        named = printable(match[0])
        return (
            f'each program prints "{named}" …: a library in {named.rpartition(" from ")[2]} cannot be loaded;'
            " Hostwright ignores these lines, but other programs may fail: remove the library from that file"
        )
    text = " ".join(printable(noise.decode("utf-8", errors="replace")).split())
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    shell = f" ({lines[0]})" if lines else ""
    origin = f"from {' and '.join(lines[1:])}" if lines[1:] else "from none of its own start files (PAM, sshd?)"
    return (
        f'its login shell{shell} prints "{shown}" before each command, {origin}; Hostwright ignores this output, '
        "but scp and rsync may fail: print only in interactive shells"
    )
