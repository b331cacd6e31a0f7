"""All probes of a host as one POSIX sh program for one exec channel, and its output as facts.

A mark stands between answers: the exit status of the one that ends there and the number of the one that begins. It has
a nonce of this run, so that no file or tool on the host can imitate it. A probe costs the host one fork, its subshell;
what all of them print goes through one ``head``, which passes it on in whole blocks. A probe that hangs is ended on the
host (``watch.sh``), and the others are answered. Bytes that are not UTF-8, and NUL,
which no shell word can hold, become U+FFFD: an answer is text to be compared, never to be trusted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Answer, Facts, Probe

OBSERVE_TIMEOUT_S = 180.0  #: a whole observation; a green host answers in well under a second
BOUND_S = 40  #: of one probe; those that may hang have bounds of their own, of which the longest is 35 s
_SHARE = 4  #: our choice: of a look's time one probe may take up to a quarter
LEAST_S = 2  #: our choice: what is left to a probe after others have hung
_SLACK_BYTES = 64 * 1024  #: what sudo and its PAM modules may add around the answers
_MARK_BYTES = 128  #: a mark is shorter
_ENDED_STATUS = 137  #: what a shell says of a program that was killed
_CUT_STATUS = 141  #: what a shell says of a program that nobody reads any more

#: A shell's own process id; ``$$`` is that of the shell around it. Redirections of ``{ }`` would leave the watch a copy
#: of the channel's standard error, which then ends no sooner than it does.
_WATCH = """\
exec 2>/dev/null </dev/null
read -r shell _ </proc/self/stat; watch "$shell" & watcher=$!
trap 'kill "$watcher"; exit 141' PIPE"""


def ordered(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Each probe once, in the order of first mention: its index is its number in the program."""
    return tuple(dict.fromkeys(probes))


def new_nonce() -> str:
    """A marker that no output of a host can contain by chance."""
    return secrets.token_hex(12)


def programs(probes: Sequence[Probe], nonce: str, timeout_s: float = OBSERVE_TIMEOUT_S) -> tuple[str, str]:
    """The observation of one host in ``timeout_s`` seconds: what the login user runs, and what root does (empty:
    nothing).
    """
    numbered = list(enumerate(probes))
    bound_s = max(1, min(BOUND_S, int(timeout_s / _SHARE)))
    return (
        _program([(number, probe) for number, probe in numbered if not probe.root], nonce, bound_s),
        _program([(number, probe) for number, probe in numbered if probe.root], nonce, bound_s),
    )


def _program(numbered: Sequence[tuple[int, Probe]], nonce: str, bound_s: int) -> str:
    """These probes, each in a subshell. They are ended when they have printed more than all their caps together."""
    if not numbered:
        return ""
    cap = cap_bytes(probe for _, probe in numbered)
    watch = sh_file(__file__, "watch.sh", nonce=nonce, bound_s=bound_s, least_s=min(LEAST_S, bound_s))
    lines = ["LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin", watch, "{", _WATCH]
    status = ""
    for number, probe in numbered:
        lines += [f"printf '\\n{nonce} %s {number}\\n' \"{status}\"", "(", probe.script, ")"]
        status = "$?"
    lines += [
        f"printf '\\n{nonce} %s \\n' \"$?\"",
        'kill "$watcher"',
        sh("} | head -c %s", cap),
        "",
    ]
    return "\n".join(lines)


def parse(probes: Sequence[Probe], nonce: str, output: bytes, host: str) -> Facts:
    """The facts in a program's output, each cut at its cap.

    If a probe has ended the program, the facts are those up to it, and the others have to be asked again. An answer
    that is missing otherwise, or doubled, is a ``ProtocolError``.
    """
    answers: dict[Probe, Answer] = {}
    cut = False
    for number, status, answer, late_s in _answers(nonce, output):
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
        ended = _CUT_STATUS if status is None else status
        answers[probe] = Answer(ended, text, len(answer) >= probe.cap_bytes, late_s)
    missing = [probe for probe in probes if probe not in answers]
    if missing and not cut:
        raise ProtocolError(
            host,
            f"it answered {len(answers)} of {len(probes)} probes; the first without an answer is: "
            f"{missing[0].script.splitlines()[0][:80]!r}",
        )
    return Facts(answers)


def _answers(nonce: str, output: bytes) -> Iterable[tuple[int, int | None, bytes, int]]:
    """Number, status and text of each answer, and the seconds after which its probe was ended (0: it ended by itself).
    The status is ``None`` where the program ended within it.
    """
    found = re.finditer(rb"\n?" + re.escape(nonce.encode()) + rb" ([0-9]{0,6}|late) ([0-9]{0,6})\n", output)
    number, begin, late = -1, 0, None
    for mark in found:
        if mark[1] == b"late":
            late = late or mark
            continue
        if number >= 0:
            yield (number, int(mark[1]) if mark[1] else None, *_text(output, begin, mark.start(), late, mark[1]))
        number, begin, late = int(mark[2]) if mark[2] else -1, mark.end(), None
    if number >= 0:
        yield number, None, output[begin:], 0


def _text(output: bytes, begin: int, end: int, late: re.Match[bytes] | None, status: bytes) -> tuple[bytes, int]:
    """An answer without the mark that its probe is late, and how late it was. One that ended just then is not late."""
    if late is None:
        return output[begin:end], 0
    if status and int(status) == _ENDED_STATUS:
        return output[begin : late.start()], int(late[2] or 0)
    return output[begin : late.start()] + output[late.end() : end], 0


def cap_bytes(probes: Iterable[Probe]) -> int:
    """How many bytes a whole observation may send back; a host that sends more is cut off."""
    return sum(probe.cap_bytes + _MARK_BYTES for probe in probes) + _SLACK_BYTES
