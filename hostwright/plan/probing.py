"""All probes of a host as one POSIX sh program for one exec channel, and its output as facts.

A mark stands between answers: the exit status of the one that ends there and the number of the one that begins. It has
a nonce of this run, so that no file or tool on the host can imitate it. A probe costs the host one fork, its subshell;
what all of them print goes through one ``head``, which passes it on in whole blocks. Bytes that are not UTF-8, and NUL,
which no shell word can hold, become U+FFFD: an answer is text to be compared, never to be trusted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from itertools import pairwise

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Facts, Probe

OBSERVE_TIMEOUT_S = 120.0  #: a whole observation; a green host answers in well under a second
_SLACK_BYTES = 64 * 1024  #: what sudo and its PAM modules may add around the answers
_MARK_BYTES = 128  #: a mark is shorter
_CUT_STATUS = 141  #: what a shell says of a program that nobody reads any more


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Each probe once, in the order of first mention: its index is its number in the program."""
    return tuple(dict.fromkeys(probes))


def new_nonce() -> str:
    """A marker that no output of a host can contain by chance."""
    return secrets.token_hex(12)


def programs(probes: Sequence[Probe], nonce: str) -> tuple[str, str]:
    """The whole observation of one host: what the login user runs, and what root does (empty: nothing)."""
    numbered = list(enumerate(probes))
    return (
        _program([(number, probe) for number, probe in numbered if not probe.root], nonce),
        _program([(number, probe) for number, probe in numbered if probe.root], nonce),
    )


def _program(numbered: Sequence[tuple[int, Probe]], nonce: str) -> str:
    """These probes, each in a subshell. They are ended when they have printed more than all their caps together."""
    if not numbered:
        return ""
    cap = cap_bytes(probe for _, probe in numbered)
    lines = ["LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin", "{"]
    status = ""
    for number, probe in numbered:
        lines += [f"printf '\\n{nonce} %s {number}\\n' \"{status}\"", "(", probe.script, ")"]
        status = "$?"
    lines += [f"printf '\\n{nonce} %s \\n' \"$?\"", sh("} 2>/dev/null </dev/null | head -c %s", cap), ""]
    return "\n".join(lines)


def parse(probes: Sequence[Probe], nonce: str, output: bytes, host: str) -> Facts:
    """The facts in a program's output, each cut at its cap.

    If a probe has ended the program, the facts are those up to it, and the others have to be asked again. An answer
    that is missing otherwise, or doubled, is a ``ProtocolError``.
    """
    answers: dict[Probe, Answer] = {}
    cut = False
    for number, status, answer in _answers(nonce, output):
        if number >= len(probes) or probes[number] in answers:
            raise ProtocolError(
                host,
                "its answers to the probes are out of order; check whether something on it rewrites command output",
            )
        probe = probes[number]
        if status is None:
            if len(answer) < probe.cap_bytes:
                continue
            cut = True
        text = answer[: probe.cap_bytes].decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        answers[probe] = Answer(_CUT_STATUS if status is None else status, text, len(answer) >= probe.cap_bytes)
    missing = [probe for probe in probes if probe not in answers]
    if missing and not cut:
        raise ProtocolError(
            host,
            f"it answered {len(answers)} of {len(probes)} probes; the first without an answer is: "
            f"{missing[0].script.splitlines()[0][:80]!r}",
        )
    return Facts(answers)


def _answers(nonce: str, output: bytes) -> Iterable[tuple[int, int | None, bytes]]:
    """Number, status and text of each answer; the status is ``None`` where the program ended within it."""
    marks = list(re.finditer(rb"\n?" + re.escape(nonce.encode()) + rb" (\d{0,6}) (\d{0,6})\n", output))
    for mark, following in pairwise([*marks, None]):
        if mark is not None and mark[2]:
            end, status = (following.start(), following[1]) if following else (len(output), b"")
            yield int(mark[2]), int(status) if status else None, output[mark.end() : end]


def cap_bytes(probes: Iterable[Probe]) -> int:
    """How many bytes a whole observation may send back; a host that sends more is cut off."""
    return sum(probe.cap_bytes + _MARK_BYTES for probe in probes) + _SLACK_BYTES
