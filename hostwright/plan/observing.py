"""Look at a host: every question over one exec channel, the answers as facts."""

from __future__ import annotations

from collections.abc import Sequence

from hostwright.common.errors import ProtocolError
from hostwright.plan import probing
from hostwright.plan.desired import Desired
from hostwright.plan.model import Answer, Facts, Probe
from hostwright.plan.planning import LOGIN_SHELL
from hostwright.transport.exchange import Deadline
from hostwright.transport.login.startfiles import noise_note
from hostwright.transport.root.rootshell import RootShell

PACKED_FROM = 12  #: as many probes' answers are worth the process that packs them
SILENT_S = 90.0  #: our choice: sudo may ask a directory that does not answer before the first sign of life (``BEAT_S``)
MOST_ROUNDS = 8  #: our choice: a host on which so many probes print without end does it on purpose


def observe(shell: RootShell, desired: Desired) -> Facts:
    """All facts of a host that its desired state asks for, over one exec channel."""
    return ask(shell, desired.probes())


def ask(shell: RootShell, probes: Sequence[Probe], *, timeout_s: float = probing.OBSERVE_TIMEOUT_S) -> Facts:
    """The answers of a host to these questions, over one exec channel; root only where one of them needs it.

    A probe that prints without end takes the others with it: those are asked again, over a channel each time; so are
    those of a pass whose output cannot be read. One that does not end is ended, and what it asks is not known
    (``Facts.late``).
    """
    answers: dict[Probe, Answer] = {}
    deadline, rounds = Deadline(timeout_s), 0
    while left := [probe for probe in probes if probe not in answers]:
        if rounds == MOST_ROUNDS:
            raise ProtocolError(shell.host, f"more than {rounds} of its answers are too long; they were discarded")
        facts = _ask(shell, left, deadline.left_s(), alone=rounds > 0)
        answers.update({**facts, **facts.late})
        rounds += 1
    if note := noise_note(shell.session):
        answers[LOGIN_SHELL] = Answer(0, note)
    return Facts(answers)


def _ask(shell: RootShell, probes: Sequence[Probe], timeout_s: float, *, alone: bool) -> Facts:
    nonce = probing.new_nonce()
    user, root = probing.programs(probes, nonce, timeout_s, alone=alone)
    cap_bytes = probing.cap_bytes(probes)
    if len(probes) < PACKED_FROM:
        output = shell.attempt(root, as_user=user, timeout_s=timeout_s, cap_bytes=cap_bytes, idle_s=SILENT_S)
    else:
        output = shell.collect(
            root, as_user=user, nonce=nonce, timeout_s=timeout_s, cap_bytes=cap_bytes, idle_s=SILENT_S
        )
    if output.truncated:
        raise ProtocolError(shell.host, "it sent far more output than expected; its answers were discarded")
    return probing.parse(probes, nonce, output.stdout, shell.host, alone=alone)
