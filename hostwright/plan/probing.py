"""All probes of a host as one POSIX sh program for one exec channel, and its output as facts.

Each answer is framed by a nonce of this run, so that no file or tool on the host can imitate a frame, and is cut at its
cap on the host. Bytes that are not UTF-8, and NUL, which no shell word can hold, become U+FFFD: an answer is text to be
compared, never to be trusted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Facts, Probe

OBSERVE_TIMEOUT_S = 120.0  #: a whole observation; a green host answers in well under a second
_SLACK_BYTES = 64 * 1024  #: what sudo and its PAM modules may add around the answers


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Each probe once, in the order of first mention: its index is its number in the program."""
    return tuple(dict.fromkeys(probes))


def new_nonce() -> str:
    """A frame marker that no output of a host can contain by chance."""
    return secrets.token_hex(12)


def programs(probes: Sequence[Probe], nonce: str) -> tuple[str, str]:
    """The whole observation of one host: what the login user runs, and what root does (empty: nothing)."""
    frames = {probe: _frame(number, probe, nonce) for number, probe in enumerate(probes)}
    user = "".join(frame for probe, frame in frames.items() if not probe.root)
    root = "".join(frame for probe, frame in frames.items() if probe.root)
    head = "LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; exec 3>&1\n"
    return head + user, head + root if root else ""


def _frame(number: int, probe: Probe, nonce: str) -> str:
    """One probe: a start line, at most ``cap_bytes`` of output, an end line with the exit status.

    Status goes through descriptor 4 because POSIX sh has no ``pipefail``: the cap must not hide it.
    """
    return "\n".join(
        [
            sh("printf '%%s\\n' %s", f"{nonce} {number} begin"),
            "s=$( { { ( exec 3>&- 4>&- 2>/dev/null </dev/null",
            probe.script,
            sh("); echo $? >&4; } | head -c %s >&3; } 4>&1 )", probe.cap_bytes),
            sh("printf '\\n%%s %%s\\n' %s \"$s\"", f"{nonce} {number} end"),
            "",
        ]
    )


def parse(probes: Sequence[Probe], nonce: str, output: bytes, host: str) -> Facts:
    """The facts in a program's output. A missing or doubled answer is a ``ProtocolError``."""
    pattern = re.compile(
        rb"^" + nonce.encode() + rb" (\d+) begin\n(.*?)\n" + nonce.encode() + rb" \1 end (\d*)$",
        re.DOTALL | re.MULTILINE,
    )
    answers: dict[Probe, Answer] = {}
    for match in pattern.finditer(output):
        number = int(match[1])
        if number >= len(probes) or probes[number] in answers:
            raise ProtocolError(
                host,
                "its answers to the probes are out of order; check whether something on it rewrites command output",
            )
        probe = probes[number]
        text = match[2].decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        answers[probe] = Answer(int(match[3] or 255), text, truncated=len(match[2]) >= probe.cap_bytes)
    missing = [probe for probe in probes if probe not in answers]
    if missing:
        raise ProtocolError(
            host,
            f"it answered {len(answers)} of {len(probes)} probes; the first without an answer is: "
            f"{missing[0].script.splitlines()[0][:80]!r}",
        )
    return Facts(answers)


def cap_bytes(probes: Iterable[Probe]) -> int:
    """How many bytes a whole observation may send back; a host that sends more is cut off."""
    return sum(probe.cap_bytes + 128 for probe in probes) + _SLACK_BYTES
