"""Replayed host: an sshd's forced command that sends the recorded output of a host.

    python -I -S answer.py RECORDING

The program finds the client's command and input in the file ``RECORDING`` (see ``recorder.py``), and sends the recorded
output. Random words of a connection are hexadecimal texts of at least 16 characters; in the output, the client's words
replace the recorded words. For an unknown command or input, the program exits with status 99, and stores the request
beside the recording. The program uses only the standard library, because sshd starts it for each channel.
"""

import marshal
import os
import re
import sys
import zlib

#: replacement for ``typing.TYPE_CHECKING``. The import of typing would take longer than this program.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNKNOWN_STATUS = 99
WORD = re.compile(rb"[0-9a-f]{16,}")
GZIP = b"\x1f\x8b\x08"
_WINDOW = 16 + zlib.MAX_WBITS


def masked(text: bytes) -> bytes:
    """Return ``text`` with unpacked gzip members and masked random words, for comparisons."""
    return WORD.sub(b"#", unpacked(text))


def changed(recorded: bytes, now: bytes) -> dict[bytes, bytes]:
    """Return recorded random word → current word, for texts that are otherwise equal."""
    pairs = zip(WORD.findall(unpacked(recorded)), WORD.findall(unpacked(now)), strict=False)
    return {old: new for old, new in pairs if old != new}


def replaced(text: bytes, words: dict[bytes, bytes]) -> bytes:
    """Replace the random words in the recorded output ``text``, also in gzip members."""
    before, mark, _ = text.partition(GZIP)
    if not mark:
        return _substituted(text, words)
    member = zlib.decompressobj(_WINDOW)
    inside = member.decompress(text[len(before) :])
    packer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW)
    packed = packer.compress(_substituted(inside, words)) + packer.flush()
    return _substituted(before, words) + packed + replaced(member.unused_data, words)


def unpacked(text: bytes) -> bytes:
    """Return ``text`` with its gzip members unpacked."""
    before, mark, _ = text.partition(GZIP)
    if not mark:
        return text
    member = zlib.decompressobj(_WINDOW)
    return before + member.decompress(text[len(before) :]) + unpacked(member.unused_data)


def _substituted(text: bytes, words: dict[bytes, bytes]) -> bytes:
    for old, new in words.items():
        text = text.replace(old, new)
    return text


def read(size: int) -> bytes:
    """Read ``size`` bytes of standard input, or fewer at the end."""
    parts = []
    while size and (part := os.read(0, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(descriptor: int, text: bytes) -> None:
    """Write all of ``text`` to a file descriptor."""
    while text:
        text = text[os.write(descriptor, text) :]


def main() -> int:
    """Replay the output of the client's command; return the recorded exit status."""
    store = sys.argv[1]
    asked = os.environb.get(b"SSH_ORIGINAL_COMMAND", b"")
    with open(store, "rb") as file:  # noqa: PTH123 - see above
        recording = marshal.load(file)  # noqa: S302 - the benchmark's own file
    candidates = recording.get(masked(asked), [])
    if not candidates:
        return unknown(store, asked)
    words = changed(candidates[0]["command"], asked)
    for turn in range(max(len(one["turns"]) for one in candidates)):
        sent, candidates = chosen(candidates, turn)
        if not candidates:
            return unknown(store, asked + b"\n--\n" + sent)
        words.update(changed(candidates[0]["inputs"][turn], sent))
        _, out, err = candidates[0]["turns"][turn]
        write(2, replaced(err, words))
        write(1, replaced(out, words))
    return int(candidates[0]["status"])


def chosen(candidates: "list[dict[str, Any]]", turn: int) -> "tuple[bytes, list[dict[str, Any]]]":
    """Read the client's input number ``turn``; return the input, and the candidates with the same input.

    Candidates with shorter inputs are tried first. The list is empty if no candidate matches.
    """
    sent = b""
    for one in sorted(candidates, key=lambda one: len(one["inputs"][turn]) if turn < len(one["inputs"]) else 0):
        if turn >= len(one["inputs"]):
            continue
        sent += read(len(one["inputs"][turn]) - len(sent))
        if masked(sent) == masked(one["inputs"][turn]):
            return sent, [one] if sent else candidates
    return sent, []


def unknown(store: str, asked: bytes) -> int:
    """Store the unknown request ``asked`` in a file beside the recording; return the exit status 99."""
    with open(store + ".unknown", "ab") as file:  # noqa: PTH123 - see above
        file.write(asked[:4096] + b"\n====\n")
    return UNKNOWN_STATUS


if __name__ == "__main__":
    sys.exit(main())
