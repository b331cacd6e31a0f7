"""All probes of a host as one POSIX sh program for one exec channel, and its output as facts.

A mark stands between answers: the exit status of the one that ends there and the number of the one that begins. It has
a nonce of this run, so that no file or tool on the host can imitate it. Probes that are parts of a pass
(``model.Pass``) are answered by one run of a tool; what that leaves open is asked there and then, each probe by itself.
Those that are ``shared`` have one subshell together. If that ends before its last probe (one of them hangs, or ends the
shell), the rest is asked again, each by itself. Any other probe costs the host one fork, its subshell. All output goes
through one ``head``, which passes it on in whole blocks. A probe that hangs is ended on the host
(``watch.sh``), and the others are answered. Bytes that are not UTF-8, and NUL, which no shell word can hold, become
U+FFFD: an answer is text to be compared, never to be trusted.
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

OBSERVE_TIMEOUT_S = 180.0  #: a whole observation; a green host answers in well under a second
BOUND_S = 40  #: of one probe; those that may hang have bounds of their own, of which the longest is 35 s
_SHARE = 4  #: our choice: of a look's time one probe may take up to a quarter
LEAST_S = 2  #: our choice: what is left to a probe after others have hung
BEAT_S = 10  #: our choice: a host that takes longer gives a sign of life so often, on standard error
_SLACK_BYTES = 64 * 1024  #: what sudo and its PAM modules may add around the answers
_MARK_BYTES = 128  #: a mark is shorter
_ENDED_STATUS = 137  #: what a shell says of a program that was killed
_CUT_STATUS = 141  #: what a shell says of a program that nobody reads any more

_ENVIRONMENT = "LC_ALL=C; export LC_ALL; PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
#: A shell's own process id; ``$$`` is that of the shell around it. The watch alone keeps the channel's standard error.
_WATCH = """\
exec 3>&2 2>/dev/null </dev/null
read -r shell _ </proc/self/stat; watch "$shell" & watcher=$!
exec 3>&-; trap 'kill "$watcher"; exit 141' PIPE
ended="""


def new_nonce() -> str:
    """A marker that no output of a host can contain by chance."""
    return secrets.token_hex(12)


def programs(
    probes: Sequence[Probe], nonce: str, timeout_s: float = OBSERVE_TIMEOUT_S, *, alone: bool = False
) -> tuple[str, str]:
    """The observation of one host in ``timeout_s`` seconds: what the login user runs, and what root does (empty:
    nothing). With ``alone``, each probe is asked by itself, without passes.
    """
    bound_s = max(1, min(BOUND_S, int(timeout_s / _SHARE)))
    values = {"nonce": nonce, "bound_s": bound_s, "least_s": min(LEAST_S, bound_s), "beat_s": BEAT_S}
    watch = "\n".join((_ENVIRONMENT, sh_file(__file__, "watch.sh", **values)))
    asking = _asking(tuple(probes), alone)
    return watch + asking.user if asking.user else "", watch + asking.root if asking.root else ""


@dataclass(frozen=True, slots=True)
class _Asking:
    """What is the same for all hosts that are asked these probes."""

    passes: tuple[Asked, ...]
    caps: tuple[int, ...]  #: bytes of each answer: of the probes, then of the passes
    user: str  #: the program of the login user without its watch; empty: nothing
    root: str  #: that of root


@lru_cache(maxsize=64)  # the hosts of a fleet are asked the same
def _asking(probes: tuple[Probe, ...], alone: bool) -> _Asking:
    passes = () if alone else passes_of(probes)
    caps = (*(probe.cap_bytes for probe in probes), *(asked.cap_bytes for asked in passes))
    user, root = (_body(probes, passes, alone=alone, root=root) for root in (False, True))
    return _Asking(passes, caps, user, root)


def _body(probes: tuple[Probe, ...], passes: tuple[Asked, ...], *, alone: bool, root: bool) -> str:
    """Those of these probes that one user asks. They are ended when they have printed more than all their caps."""
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
    """Probes in one subshell; each finds the options and words of a new one."""
    yield "("
    for number, probe in probes.items():
        yield from (f"mark {number}", "unset IFS; set +f --", probe.script, "ended=$?")
    yield from ("mark ''", "); ended=$?")


def _pass(number: int, asked: Asked) -> list[str]:
    """A pass, and behind it each of its probes, which is asked where the pass has not answered it."""
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
    """The facts in a program's output, each cut at its cap.

    If a probe has ended the program, the facts are those up to it, and the others have to be asked again; so are those
    of a pass that cannot be read, and shared ones without an answer, each ``alone``. An answer that is missing
    otherwise, or doubled, is a ``ProtocolError``.
    """
    asking = _asking(tuple(probes), alone)
    passes, caps = asking.passes, asking.caps
    answers: dict[int, Answer] = {}
    cut = False
    for number, status, answer, late_s in _answers(nonce, output):
        if number >= len(caps) or number in answers:
            raise ProtocolError(
                host,
                "its answers to the probes are out of order; check whether something on it rewrites command output",
            )
        if status is None:
            if len(answer) < caps[number]:
                continue
            cut = True
        if late_s and not alone and number < len(probes) and probes[number].shared:
            continue  # it may be another one that took the time of all
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
            f"it answered {len(answered)} of {len(probes)} probes; the first without an answer is: "
            f"{probes[missing[0]].script.splitlines()[0][:80]!r}",
        )
    return Facts({probes[number]: answer for number, answer in answered.items()})


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
