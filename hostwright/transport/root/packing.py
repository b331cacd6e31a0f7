"""Compresses a long program and its output, to save SSH messages, and round trips over a slow network.

Decompression stops at a size limit, because a malicious host could send data that grows a thousandfold.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import replace
from functools import lru_cache

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh
from hostwright.transport.exchange import Output

UNPACKED_STATUS = 113  #: exit status of ``COMMAND`` on a host without gzip, where the program does not run
#: shell command that unpacks and runs a program from standard input, and compresses output and exit status
COMMAND = sh(
    "[ -x /bin/gzip ] || exit %s; /bin/gzip -dc | { /bin/sh; printf '\\n%%s' \"$?\"; } | /bin/gzip -cn1",
    UNPACKED_STATUS,
)
_GZIP = 31  #: zlib's ``wbits`` for the gzip format
#: gzip compression level; level 6 produces two thirds of the size of level 1 in twice the time
_LEVEL = 6
_STATUS_BYTES = 4  #: maximum number of bytes of the line end and exit status after the output


def packed(program: bytes, nonce: bytes = b"") -> bytes:
    """Compress ``program`` for the shell command ``COMMAND``. ``COMMAND`` unpacks and runs the program.

    ``nonce`` is the part that differs for each host. The rest of the program is cached for all hosts, and must not
    contain a secret.
    """
    if not nonce:
        return gzip.compress(program, _LEVEL, mtime=0)
    return gzip.compress(nonce, 0, mtime=0).join(map(_member, program.split(nonce)))


@lru_cache(maxsize=64)
def _member(piece: bytes) -> bytes:
    return gzip.compress(piece, _LEVEL, mtime=0)


def room(cap_bytes: int) -> int:
    """Return the maximum size of ``cap_bytes`` of output after compression; may exceed ``cap_bytes``."""
    return cap_bytes + cap_bytes // 1000 + 64


def unpacked(host: str, output: Output, cap_bytes: int) -> Output:
    """Return the output, truncated at ``cap_bytes``, and the exit status of a program that ``COMMAND`` ran.

    Raises ``ProtocolError`` if the compressed data in ``output`` is damaged or incomplete.
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
            "the host's compressed output is damaged or incomplete; check that gzip works on the host, and that no "
            "program rewrites command output"
        )
        raise ProtocolError(host, sentence)
    return replace(output, stdout=own, status=int(status))


def _text(data: bytes, most: int) -> tuple[bytes, bool]:
    stream = zlib.decompressobj(_GZIP)
    try:
        text = stream.decompress(data, most)
    except zlib.error:
        return b"", False
    return text, stream.eof and not stream.unused_data
