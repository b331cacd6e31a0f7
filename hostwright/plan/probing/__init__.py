"""Runs all probes of a host as one POSIX sh program over one exec channel, and parses its output into facts.

Marks separate the answers. A mark has the exit status of the answer before it and the number of the probe after it. It
also contains a random nonce, so that no file or tool on the host can forge marks.

One run of a ``model.Pass`` answers all probes that have a part in it. Probes that the ``Pass`` does not answer run
right after the ``Pass``. Probes marked ``shared`` run in one subshell. If one of these probes hangs or exits, all
unanswered probes of the subshell run again, each on its own. Any other probe has its own subshell, which costs a fork.
One ``head`` process sends all output in large blocks.

The script ``watch.sh`` kills a probe that hangs on the host, and the other probes are still answered. Bytes that are
not UTF-8, and NUL, become U+FFFD.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh, sh_file
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.probing.questions import Asked, ordered, passes_of

__all__ = ["OBSERVE_TIMEOUT_S", "cap_bytes", "new_nonce", "ordered", "parse", "programs"]

#: time limit in seconds for all probes of a host together. A healthy host needs under one second.
OBSERVE_TIMEOUT_S = 180.0
BOUND_S = 40  #: time limit in seconds for one probe. Probes that may hang end after at most 35 s.
_SHARE = 4  #: divisor of the total time limit, which gives the time limit of one probe (our choice)
LEAST_S = 2  #: minimum time limit in seconds of a probe after other probes hung (our choice)
BEAT_S = 10  #: interval in seconds between heartbeats on standard error (our choice)
_SLACK_BYTES = 64 * 1024  #: maximum number of output bytes that belong to no probe, such as from sudo or PAM modules
_MARK_BYTES = 128  #: maximum number of bytes in the output between the answers to two probes
_ENDED_STATUS = 137  #: exit status for a program killed by SIGKILL
_CUT_STATUS = 141  #: exit status for a program ended by SIGPIPE

_ENVIRONMENT = "LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
#: shell code that starts the process ``watch``
_WATCH = """\
exec 3>&2 2>/dev/null </dev/null
read -r shell _ </proc/self/stat; watch "$shell" & watcher=$!
exec 3>&-; trap 'kill "$watcher"; exit 141' PIPE
ended="""


def new_nonce() -> str:
    """Return a random text for marks. No host's output contains this text by chance."""
    return secrets.token_hex(12)


def programs(
    probes: Sequence[Probe], nonce: str, timeout_s: float = OBSERVE_TIMEOUT_S, *, alone: bool = False
) -> tuple[str, str]:
    """Return two programs that run a host's probes within ``timeout_s`` seconds: one for the login user, one for root.

    A program without probes is empty. With ``alone``, each probe runs in its own subshell, without ``Pass`` objects.
    """
    bound_s = max(1, min(BOUND_S, int(timeout_s / _SHARE)))
    values = {"nonce": nonce, "bound_s": bound_s, "least_s": min(LEAST_S, bound_s), "beat_s": BEAT_S}
    watch = "\n".join((_ENVIRONMENT, sh_file(__file__, "watch.sh", **values)))
    asking = _asking(tuple(probes), alone)
    return watch + asking.user if asking.user else "", watch + asking.root if asking.root else ""


@dataclass(frozen=True, slots=True)
class _Asking:
    passes: tuple[Asked, ...]
    #: maximum sizes in bytes: of each probe's answer, then of each ``Pass``'s output
    caps: tuple[int, ...]
    user: str  #: program to run as the login user, without the code of ``watch.sh``; may be empty
    root: str  #: program to run as root, without the code of ``watch.sh``; may be empty


@lru_cache(maxsize=64)  # Many hosts of a fleet have the same probes.
def _asking(probes: tuple[Probe, ...], alone: bool) -> _Asking:
    passes = () if alone else passes_of(probes)
    caps = (*(probe.cap_bytes for probe in probes), *(asked.cap_bytes for asked in passes))
    user, root = (_body(probes, passes, alone=alone, root=root) for root in (False, True))
    return _Asking(passes, caps, user, root)


def _body(probes: tuple[Probe, ...], passes: tuple[Asked, ...], *, alone: bool, root: bool) -> str:
    own = {len(probes) + place: asked for place, asked in enumerate(passes) if asked.root == root}
    within = {number for asked in own.values() for number in asked.members}
    single = {number: probe for number, probe in enumerate(probes) if probe.root == root and number not in within}
    if not own and not single:
        return ""
    lines = ["{", _WATCH]
    for number, asked in own.items():
        lines += _pass(number, asked)
    shared = {} if alone else {number: probe for number, probe in single.items() if probe.shared}
    for number, probe in single.items():
        if number not in shared:
            lines += _single(number, probe)
    if shared:
        lines += _shared(shared)
    cap = cap_bytes([probe for probe in probes if probe.root == root])
    return "\n".join([*lines, "mark ''", 'kill "$watcher"', sh("} | head -c %s", cap), ""])


def _single(number: int, probe: Probe) -> tuple[str, ...]:
    return (f"mark {number}", "(", probe.script, "); ended=$?")


def _shared(probes: Mapping[int, Probe]) -> Iterator[str]:
    yield "("
    for number, probe in probes.items():
        yield from (f"mark {number}", "unset IFS; set +f --", probe.script, "ended=$?")
    yield from ("mark ''", "); ended=$?")


def _pass(number: int, asked: Asked) -> list[str]:
    kind = asked.kind
    lines = [f"mark {number}", "said=$(", kind.script(asked.words), "); ended=$?"]
    lines += [
        "printf '%s\\n' \"$said\"",
        sh('if [ "$ended" -gt %s ]; then said=; else said=:$said; fi', kind.fails_with),
    ]
    for member, probe in asked.members.items():
        marks = filter(None, map(kind.differing, probe.part.words if probe.part else ()))
        patterns = ["''", *(f"*{sh('%s', mark)}*" for mark in marks)]
        lines += [f"case $said in {' | '.join(patterns)})", *_single(member, probe), ";; esac"]
    return lines


def parse(probes: Sequence[Probe], nonce: str, output: bytes, host: str, *, alone: bool = False) -> Facts:
    """Parse the output of the ``programs`` into facts. Each answer is truncated at its probe's limit.

    The facts lack probes that must run again, each ``alone``: probes after a probe with too much output, probes of a
    ``Pass`` with unreadable output, and ``shared`` probes without an answer. Raises ``ProtocolError`` if any other
    answer is missing, or an answer occurs twice.
    """
    asking = _asking(tuple(probes), alone)
    passes, caps = asking.passes, asking.caps
    answers: dict[int, Answer] = {}
    cut = False
    for number, status, answer, late_s in _answers(nonce, output):
        if number >= len(caps) or number in answers:
            raise ProtocolError(
                host,
                "the answers to the probes are out of order; check whether a program on the host rewrites "
                "command output",
            )
        if status is None:
            if len(answer) < caps[number]:
                continue
            cut = True
        if late_s and not alone and number < len(probes) and probes[number].shared:
            continue  # The probe runs again alone, because other probes may have used up the time.
        text = answer[: caps[number]].decode("utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
        ended = _CUT_STATUS if status is None else status
        answers[number] = Answer(ended, text, len(answer) >= caps[number], late_s)
    made = [(asked, answers[number]) for number, asked in enumerate(passes, len(probes)) if number in answers]
    answered = {number: answer for asked, found in made for number, answer in asked.answers(found).items()}
    answered |= {number: answer for number, answer in answers.items() if number < len(probes)}
    left = {number for asked, _ in made for number in asked.members}
    left |= set() if alone else {number for number, probe in enumerate(probes) if probe.shared}
    missing = [number for number in range(len(probes)) if number not in answered and number not in left]
    if missing and not cut:
        raise ProtocolError(
            host,
            f"the host answered only {len(answered)} of {len(probes)} probes. The first probe without an answer is "
            f"{probes[missing[0]].script.splitlines()[0][:80]!r}",
        )
    return Facts({probes[number]: answer for number, answer in answered.items()})


def _answers(nonce: str, output: bytes) -> Iterable[tuple[int, int | None, bytes, int]]:
    """Yield each probe's number, exit status and output, and the seconds after which the probe was killed (0: not
    killed).

    The exit status is ``None`` if the program ended during the probe.
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
    if late is None:
        return output[begin:end], 0
    if status and int(status) == _ENDED_STATUS:
        return output[begin : late.start()], int(late[2] or 0)
    return output[begin : late.start()] + output[late.end() : end], 0


def cap_bytes(probes: Iterable[Probe]) -> int:
    """Return the maximum output in bytes of a program with these probes. A program that sends more is ended."""
    return sum(probe.cap_bytes + _MARK_BYTES for probe in probes) + _SLACK_BYTES
