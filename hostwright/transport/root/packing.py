"""A long program sent compressed, and its output in one piece, compressed likewise: fewer SSH messages, and fewer bytes
on a slow line, where each flight beyond what TCP sends unasked is a round trip.

A program and an honest answer shrink to a third. What a host sends that lies may grow a thousandfold, so what is
unpacked has a limit as well, and nothing is ever unpacked beyond it.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace
from functools import lru_cache

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh
from hostwright.transport.exchange import Output

UNPACKED_STATUS = 113  #: exit status of ``COMMAND`` where there is no gzip, which has then read and run nothing
#: Runs the program on its standard input: in its output, the exit status stands behind the last line end. In Debian 11
#: and older gzip is in /bin alone, and everywhere it is found there.
COMMAND = sh(
    "[ -x /bin/gzip ] || exit %s; /bin/gzip -dc | { /bin/sh; printf '\\n%%s' \"$?\"; } | /bin/gzip -cn1",
    UNPACKED_STATUS,
)
_GZIP = 31  #: zlib's word for gzip's format, with the largest window
_LEVEL = 6  #: a third smaller than 1, for twice the time: once for the hosts of a fleet that are asked the same
_STATUS_BYTES = 4  #: of a line end and an exit status


def packed(program: bytes, nonce: bytes = b"") -> bytes:
    """The program for ``COMMAND``. With a ``nonce`` that stands in it and is another each time, the rest is compressed
    once for all hosts: then it must hold no secret, for it is kept.
    """
    if not nonce:
        return gzip.compress(program, _LEVEL, mtime=0)
    return gzip.compress(nonce, 0, mtime=0).join(map(_member, program.split(nonce)))


@lru_cache(maxsize=64)
def _member(piece: bytes) -> bytes:
    return gzip.compress(piece, _LEVEL, mtime=0)


def room(cap_bytes: int) -> int:
    """How many bytes such an output of ``cap_bytes`` may have on the line: random bytes do not shrink."""
    return cap_bytes + cap_bytes // 1000 + 64


def unpacked(host: str, output: Output, cap_bytes: int) -> Output:
    """The output and exit status of a program that ``COMMAND`` has run; more than ``cap_bytes`` cuts it off.

    Raises ``ProtocolError`` where what came is damaged, or not all of it.
    """
    if output.truncated or output.status != 0:
        return output
    most = cap_bytes + _STATUS_BYTES
    text, whole = _text(output.stdout, most)
    if not whole and len(text) == most:
        return replace(output, stdout=text[:cap_bytes], truncated=True)
    own, _, status = text.rpartition(b"\n")
    if not (whole and status.isdigit() and len(status) < _STATUS_BYTES):
        sentence = (
            "what it sent compressed is damaged or not whole; check whether gzip works there, and whether something on "
            "it rewrites command output"
        )
        raise ProtocolError(host, sentence)
    return replace(output, stdout=own, status=int(status))


def _text(data: bytes, most: int) -> tuple[bytes, bool]:
    """At most so many bytes of what was compressed, and whether they are all of it."""
    stream = zlib.decompressobj(_GZIP)
    try:
        text = stream.decompress(data, most)
    except zlib.error:
        return b"", False
    return text, stream.eof and not stream.unused_data
