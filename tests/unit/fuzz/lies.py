"""What a host may say: pieces of what it should say, in any order, and pieces that have broken other programs."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from hostwright.plan.model import Answer

NONCE = "0123456789abcdef01234567"

#: that have broken readers elsewhere: digits, dates, escapes, JSON, XML, names of files, halves of things
PIECES = (
    "", "0", "-1", "1e999", "nan", "NaN", "Infinity", "9" * 19, "9" * 400, "9" * 5000, "٣", "²", "½", "1_000",
    "+1", " 1", "0x1",
    "99999-12-31T23:59:60Z", "9999-12-31T23:59:59.999999-23:59", "0000-00-00", "2026-11-22T21:00:00+00:00",
    "2026-11-22",
    "\x1b[2J", "\x1b]52;c;cm0=\x07", "\x9b31m", "\u202e", "\u2028", "\ufeff", "\ufffd", "\r", "\t", "\v",
    "\x85", "\n", "\n\n",
    "{", "}",
    "[" * 3000, '{"a":' * 2000, '{"schema": 2, "roles": {}}', '{"schema": 1e400}', '{"schema": true, "roles": []}',
    '{"schema": 99}', '{"schema": 1, "schema": 2}', r'"\ud800"', '{"run": NaN}', "null", "[]",
    "<?xml?>", "<nvidia_smi_log>", "</nvidia_smi_log>", "<gpu>", "</gpu>", "<!DOCTYPE x [<!ENTITY a 'b'>]>",
    "&a;", "<![CDATA[", "]]>",
    "heard ", "busy ", "held", "beat ", "run.json", "alive", "..", "/", "/etc/../etc/passwd", "a" * 300, "é",
    "=", " ", "|", "'", '"',
    "$(reboot)", "`id`", "; rm -rf /", "%s%n", "{0.__class__}", "470.256.02", "N/A", "[N/A]", "GPU is lost",
    "x86_64", "installed",
)  # fmt: skip
pieces = st.sampled_from(PIECES) | st.text(max_size=12) | st.integers().map(str)
lines = st.lists(pieces, max_size=6).map(" ".join) | st.lists(pieces, max_size=4).map("".join)
texts = st.lists(lines, max_size=10).map("\n".join)
#: as ``probing.parse`` hands them on: text that UTF-8 holds, without NUL
clean = texts.map(lambda text: text.encode("utf-8", "replace").decode().replace("\0", "\ufffd"))
answers = st.builds(Answer, st.sampled_from([0, 1, 2, 15, 124, 127, 141, 255, 999]), clean, st.booleans())
#: bytes of a stream, with marks of frames, answers and steps among them
marks = st.sampled_from(
    [
        text.replace("N", NONCE).encode()
        for text in (
            "hwbegin-N", "hwend-N ", "hwend-N 0.", "hwend-N 999.", "hwend-N 7", "hwbegin-", "\nN  0\n",
            "\nN 0 1\n", "\nN 0 \n", "\nN 9 0\n",
            "N begin 0\n", "N begin 1\n", "\nN end 0 0 1\n", "\nN end 1 3 -1\n", "N retry 1 0 5.125\n",
            "N retry 99 1 1.000\n", "N ", "N",
            "N begin 999999\n", "N status 3\n", "N status lost\n", "N busy 3 {}\n", "N held\n", "N beat 1\n",
        )
    ]
)  # fmt: skip
streams = st.lists(marks | st.binary(max_size=20) | clean.map(str.encode), max_size=12).map(b"".join)
cuts = st.lists(st.integers(0, 5000), max_size=8)


def pieces_of(data: bytes, places: list[int]) -> list[bytes]:
    """The data as it may come in."""
    ends = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(ends)]
