"""What sshd runs in the place of each command on the host that lies: it knows how it is spoken to and may say anything.

``liar.py KIND PID``; PID has the host's mount namespace. A lie is told in the place of a whole exchange (``TALES``), of
each answer to a probe (``ANSWERS``), of what these are packed into (``PACKS``), or of a job's log (``LOGS``); all else
is done as on an honest host.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable

MANY = 200 * 2**20  #: bytes that an endless lie would send to whoever takes them
LINE = os.environ.get("SSH_ORIGINAL_COMMAND", "")
FRAME = re.search(r"hwbegin- ([0-9a-f]+).*head -c ([0-9]+)", LINE)
NONCE, SIZE = (FRAME[1].encode(), int(FRAME[2])) if FRAME else (b"", 0)
BEGIN = b"hwbegin-" + NONCE
PID = sys.argv[-1]


def say(data: bytes, to: int = 1) -> None:
    while data:
        data = data[os.write(to, data) :]


def endless(piece: bytes, to: int = 1) -> None:
    block = piece * (65536 // len(piece) + 1)
    for _ in range(MANY // len(block)):
        say(block, to)


def begin() -> bytes:
    say(BEGIN)
    say(BEGIN, 2)
    data = b""
    while len(data) < SIZE and (piece := os.read(0, SIZE - len(data))):
        data += piece
    return data


def end(status: bytes) -> None:
    say(b"hwend-" + NONCE + b" " + status + b".")
    say(b"hwend-" + NONCE + b" " + status + b".", 2)


def drip() -> None:
    begin()
    for _ in range(6000):
        say(b"x")
        time.sleep(0.05)


def close() -> None:
    begin()
    say(b"half an ans")
    os.kill(os.getppid(), signal.SIGKILL)


TALES: dict[str, Callable[[], object]] = {
    "no beginning, noise without end": lambda: endless(b"x"),
    "errors without end before the beginning": lambda: (say(BEGIN), endless(b"x", 2)),
    "a line without end": lambda: (begin(), endless(b"x")),
    "newlines without end": lambda: (begin(), endless(b"\n")),
    "errors without end": lambda: (begin(), endless(b"E: no\n", 2)),
    "beginnings without an end": lambda: (begin(), endless(BEGIN)),
    "an end that does not end": lambda: (begin(), say(b"hwend-" + NONCE + b" "), endless(b"7")),
    "an end and then more": lambda: (begin(), say(b"hwend-" + NONCE + b" 0."), endless(b"x")),
    "a status of 5000 digits": lambda: (begin(), end(b"9" * 5000)),
    "a status that no program has": lambda: (begin(), end(b"999")),
    "slow drip": drip,
    "closed in the middle": close,
    "never a word": lambda: time.sleep(300),
    "nothing": lambda: None,
}

BOMB = b'<?xml version="1.0"?><!DOCTYPE nvidia_smi_log [<!ENTITY a0 "lol">' + b"".join(
    b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10)
)
BOMB += b"]><nvidia_smi_log><driver_version>&a9;</driver_version></nvidia_smi_log>"
STORY = (
    b'{"schema": 2, "schema": 1, "roles": {"hello": NaN}, "pid": -1e999, "at": "99999-12-31T23:59:60Z", "a": "\\ud800"}'
)

#: what an answer becomes
ANSWERS: dict[str, Callable[[bytes], bytes]] = {
    "an XML bomb": lambda _: BOMB,
    "JSON 100,000 deep": lambda _: b'{"roles":' + b"[" * 100_000,
    "JSON that readers take differently": lambda _: STORY,
    "bytes that are no text": lambda text: b"\xff\xfe\x00\xed\xa0\x80" + text.replace(b" ", b"\xa0"),
    "escape codes": lambda text: text.replace(
        b"\n", b"\x1b]52;c;cm0gLXJm\x07\x1b[2J\x1b[1;1Hgpu1: as desired\n\x9b31m"
    ),
    "forged lines": lambda _: b"\ngpu1  as desired\r\n\xe2\x80\xaegpu2  failed\n" * 50,
    "huge digits": lambda text: re.sub(rb"[0-9]+", b"9" * 5000, text) or b"9" * 5000,
    "digits that are not ASCII": lambda text: re.sub(rb"[0-9]", "٣".encode(), text) or "²".encode(),
    "negative sizes": lambda text: re.sub(rb"([0-9]+)", rb"-\1", text) or b"-1",
    "the year 99999": lambda text: re.sub(rb"[0-9]+", b"99999", text),
    "a hundred thousand of everything": lambda text: b"".join(b"run-%d {}\n" % n for n in range(100_000)),
    "links to themselves": lambda _: b"/opt/loop -> /opt/loop/../loop\n../../../etc/shadow\n/proc/self/root\n" * 900,
    "newlines": lambda _: b"\n" * 2**20,
    "nothing": lambda _: b"",
}


def growing() -> bytes:
    """A megabyte that becomes a gigabyte."""
    stream = zlib.compressobj(1, wbits=31)
    return b"".join([stream.compress(bytes(1 << 20)) for _ in range(1024)]) + stream.flush()


#: what all answers together become, which are sent compressed
PACKS: dict[str, Callable[[bytes], bytes]] = {
    "growing a thousandfold": lambda _: growing(),
    "cut in the middle": lambda packed: packed[: len(packed) // 2],
    "with a turned bit": lambda packed: packed[:100] + bytes([packed[100] ^ 1]) + packed[101:],
    "in another format": gzip.decompress,
    "twice": lambda packed: packed * 2,
    "without a status": lambda packed: gzip.compress(gzip.decompress(packed).rpartition(b"\n")[0]),
}

#: what a job's log becomes
LOGS: dict[str, Callable[[bytes], None]] = {
    "a forged log": lambda nonce: say(
        b"".join(b"\n%s begin %d\nok\n\n%s end %d 0 1\n" % (nonce, n, nonce, n) for n in range(10**5))
    ),
    "a log of newlines": lambda _: endless(b"\n"),
    "a log of one line": lambda _: endless(b"x"),
    "a log of tries": lambda nonce: endless(b"%s retry 1 0 1.000\n" % nonce),
    "a log without an end": lambda nonce: (say(b"\n%s begin 0\n\x1b[2J\xff" % nonce), os._exit(0)),
}


def nonce_in(script: bytes) -> bytes:
    """The nonce of a program of probes; empty if it is none."""
    found = re.search(rb"^nonce=([0-9a-f]{24})$", script, re.MULTILINE)
    return found[1] if found else b""


def answered(kind: str, script: bytes, output: bytes) -> bytes:
    """The output of an honest host, with a lie in the place of each answer, or between them."""
    nonce = nonce_in(script) or b"?"
    match kind:
        case "answers twice":
            return output + output
        case "another's nonce":
            return output.replace(nonce, b"0" * 24)
        case "numbers of 5000 digits":
            return re.sub(nonce + rb" ([0-9]*) ([0-9]+)\n", nonce + b" 0 " + b"9" * 5000 + b"\n", output)
        case "marks without end":
            return (b"\n" + nonce + b" 0 1\n") * 300_000
        case "half of the answers":
            return output[: len(output) // 2]
    parts = re.split(rb"(\n?" + nonce + rb" [0-9]* [0-9]*\n)", output)
    return b"".join(part if number % 2 or not number else ANSWERS[kind](part) for number, part in enumerate(parts))


BETWEEN = ("answers twice", "another's nonce", "numbers of 5000 digits", "marks without end", "half of the answers")
EVERY = (
    *TALES,
    *(f"answers: {kind}" for kind in ANSWERS),
    *(f"between: {kind}" for kind in BETWEEN),
    *(f"packed: {kind}" for kind in PACKS),
    *LOGS,
)


def honest(program: bytes, script: bytes | None) -> subprocess.CompletedProcess[bytes]:
    """What the host itself would do; a program that goes on reading reads our standard input."""
    command = ["nsenter", "-m", "-t", PID, "/bin/sh", "-c", program.decode("utf-8", "surrogateescape")]
    if script is None:
        return subprocess.run(command, check=False)
    return subprocess.run(command, input=script, capture_output=True, check=False)


def carry_out(kind: str) -> None:
    if kind in TALES:
        TALES[kind]()
        return
    program = begin()
    script = None
    packs = b"/bin/gzip -dc" in program
    if packs or program.startswith(b"/bin/sh\n"):
        script = b""
        while piece := os.read(0, 65536):
            script += piece
    if kind in LOGS and script and b'--pid="$keeper"' in script:
        nonce = re.search(rb'"nonce": "([0-9a-zA-Z]+)"', honest(b"cat /var/lib/hostwright/jobs/*/job.json", b"").stdout)
        LOGS[kind](nonce[1] if nonce else b"?")
        end(b"0")
        return
    done = honest(program, script)
    output = done.stdout or b""
    family, _, lie = kind.partition(": ")
    text = gzip.decompress(script) if packs and script else script or b""
    if family in {"answers", "between"} and nonce_in(text):
        own, line_end, status = gzip.decompress(output).rpartition(b"\n") if packs else (output, b"", b"")
        told = answered(lie, text, own) + line_end + status
        output = gzip.compress(told, 1) if packs else told
    if family == "packed" and packs:
        output = PACKS[lie](output)
    say(output)
    say(done.stderr or b"", 2)
    end(b"%d" % done.returncode)


if __name__ == "__main__":
    carry_out(sys.argv[1])
