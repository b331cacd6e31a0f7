"""Transient failures: a lock that somebody holds, a resolver or a mirror that is away for a moment.

A step that may be repeated (``Step.tries``) is repeated only when its own output names such a cause. That is decided
on the host, by ``grep -E``, so that it goes on without the controller; the same expressions are read here. They are
therefore written in what POSIX extended expressions and Python's have in common: no ``\\d``, no anchors, and no
``[^…]``, which in Python would run over the end of a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BACKOFF_S = 5.0  #: our choice: before the first retry; twice as long before each further one
BACKOFF_MAX_S = 60.0  #: the longest; up to half of it is added by chance, so that a fleet does not return in step
TAIL_BYTES = 64 * 1024  #: of a try's output that is looked at: what a failure is for stands at its end


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of transient failures, and the message by which it is known."""

    name: str
    pattern: str  #: an extended regular expression, searched for in each line
    source: str  #: where the message comes from


_HTTP = "(408|429|5[0-9][0-9])"  #: too slow, too many requests, or the server's own trouble (RFC 9110, RFC 6585)

CAUSES = (
    Cause(
        "apt-lock",
        "Could not get lock /var/(lib|cache)/(dpkg|apt)"
        "|Unable to acquire the dpkg frontend lock .*is another process using it"
        "|dpkg (frontend|(status )?database) (lock was|is) locked by another process",
        "apt fileutl.cc and debsystem.cc; dpkg lib/dpkg/dbmodify.c and file.c (18.04: is locked)",
    ),
    Cause(
        "name-resolution",
        "Temporary failure (in name resolution|resolving)|curl: \\([56]\\) Could not resolve"
        "|lookup .*: server misbehaving",
        "glibc's EAI_AGAIN; apt connect.cc; curl repeats its 5 and 6 as well (tool_operate.c); Go's net for SERVFAIL",
    ),
    Cause(
        "connection-lost",
        "[Cc]onnection reset by peer|[Cc]onnection timed out|Error reading from server|Connection failed \\[IP: "
        "|Could not handshake: (The TLS connection was non-properly terminated|Error in the pull function)"
        "|Network is unreachable|No route to host",
        "glibc's strerror; apt connect.cc, basehttp.cc and http.cc",
    ),
    Cause(
        "connection-refused",
        "(Could not connect to|Failed to connect to|NewConnectionError|dial tcp|\\.\\.\\. failed:)"
        ".*[Cc]onnection refused",
        "apt connect.cc, curl connect.c, urllib3, Go's net, wget",
    ),
    Cause(
        "transfer-cut",
        "curl: \\((7|18|28|52|55|56|92)\\) |TLS handshake timeout|dial tcp .*i/o timeout",
        "curl's manual: cannot connect, partial file, timeout, nothing, send, receive, HTTP/2; Go's net/http",
    ),
    Cause(
        "pip-network",
        "ReadTimeoutError|ConnectTimeoutError|ProtocolError|IncompleteRead|RemoteDisconnected"
        "|requests\\.exceptions\\.(ConnectionError|ConnectTimeout|ReadTimeout|ChunkedEncodingError)",
        "urllib3 exceptions.py and requests exceptions.py, as pip prints them",
    ),
    Cause(
        "http-status",
        f"Failed to fetch .* {_HTTP}  |The requested URL returned error: {_HTTP}|ERROR {_HTTP}: |HTTP error {_HTTP}"
        f"|{_HTTP} (Client|Server) Error|too many {_HTTP} error responses|unexpected HTTP status: {_HTTP}"
        "|toomanyrequests: ",
        "apt http.cc, curl, wget, pip network/utils.py and urllib3 retry.py",
    ),
    Cause(
        "mirror-in-motion",
        "Hash Sum mismatch|File has unexpected size .*Mirror sync in progress",
        "apt acquire-item.cc: the index and the file are of different moments",
    ),
)

#: What no retry mends, and what makes downloads fail in words like those above.
PERMANENT_ERE = "No space left on device|You don't have enough free space"

TRANSIENT_ERE = "|".join(f"({cause.pattern})" for cause in CAUSES)

_TRANSIENT = re.compile(TRANSIENT_ERE)
_PERMANENT = re.compile(PERMANENT_ERE)


def is_transient(text: str) -> bool:
    """Whether the output of a failed try names a transient cause, and none that is permanent.

    >>> is_transient("curl: (6) Could not resolve host: mirror.example")
    True
    >>> is_transient("Hash Sum mismatch\\nNo space left on device")
    False
    """
    return _TRANSIENT.search(text) is not None and _PERMANENT.search(text) is None


def reason(text: str) -> str:
    """The last line that names a transient cause; empty when none does."""
    return next((line.strip() for line in reversed(text.split("\n")) if _TRANSIENT.search(line)), "")
