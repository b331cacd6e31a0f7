"""A host that replays: the forced command of an sshd, which answers as a recorded host did.

    python -I -S answer.py RECORDING

The command that the client asked for, and what it then sends, are looked up in the recording (``recorder.py``). Words
that are made up for one connection, hexadecimal ones of 16 characters and more, are put into the recorded answer as the
client sent them, also in what the host has compressed. A client that asks for anything else gets status 99, and the
question is kept beside the recording. It stands on the standard library alone: it is started for each channel.
"""

import marshal
import os
import re
import sys
import zlib

TYPE_CHECKING = False  #: importing typing costs more than all the rest
if TYPE_CHECKING:
    from typing import Any

UNKNOWN_STATUS = 99
WORD = re.compile(rb"[0-9a-f]{16,}")
GZIP = b"\x1f\x8b\x08"
_WINDOW = 16 + zlib.MAX_WBITS


def masked(text: bytes) -> bytes:
    """A text without what is made up for one connection, its gzip members unpacked: their checksums are made of it."""
    return WORD.sub(b"#", unpacked(text))


def changed(recorded: bytes, now: bytes) -> dict[bytes, bytes]:
    """The words that differ between a recorded text and today's, which are otherwise the same."""
    pairs = zip(WORD.findall(unpacked(recorded)), WORD.findall(unpacked(now)), strict=False)
    return {old: new for old, new in pairs if old != new}


def replaced(text: bytes, words: dict[bytes, bytes]) -> bytes:
    """A recorded answer with today's words; a gzip member in it is unpacked and packed again."""
    before, mark, _ = text.partition(GZIP)
    if not mark:
        return _substituted(text, words)
    member = zlib.decompressobj(_WINDOW)
    inside = member.decompress(text[len(before) :])
    packer = zlib.compressobj(1, zlib.DEFLATED, _WINDOW)
    packed = packer.compress(_substituted(inside, words)) + packer.flush()
    return _substituted(before, words) + packed + replaced(member.unused_data, words)


def unpacked(text: bytes) -> bytes:
    """A text with its gzip members unpacked."""
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
    """So many bytes of what the client sends, or up to its end."""
    parts = []
    while size and (part := os.read(0, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(descriptor: int, text: bytes) -> None:
    """All of a text."""
    while text:
        text = text[os.write(descriptor, text) :]


def main() -> int:
    """Answer one command; its status."""
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
    """What the client sends now, and the recorded commands to which the same was sent: the shorter are tried first."""
    sent = b""
    for one in sorted(candidates, key=lambda one: len(one["inputs"][turn]) if turn < len(one["inputs"]) else 0):
        if turn >= len(one["inputs"]):
            continue
        sent += read(len(one["inputs"][turn]) - len(sent))
        if masked(sent) == masked(one["inputs"][turn]):
            return sent, [one] if sent else candidates
    return sent, []


def unknown(store: str, asked: bytes) -> int:
    """Keep a question that nobody asked the recorded host."""
    with open(store + ".unknown", "ab") as file:  # noqa: PTH123 - see above
        file.write(asked[:4096] + b"\n====\n")
    return UNKNOWN_STATUS


if __name__ == "__main__":
    sys.exit(main())
