"""Runs all probes on a host over one exec channel, and returns the answers as facts."""

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

#: minimum number of probes for a compressed program; below it, gzip costs more time than it saves
PACKED_FROM = 12
#: time limit in seconds without output of a host (our choice), since sudo may wait for a directory service
SILENT_S = 90.0
#: maximum number of programs that are sent to a host (our choice)
MOST_ROUNDS = 8


def observe(shell: RootShell, desired: Desired) -> Facts:
    """Return the answers to all probes of ``desired``, read over one exec channel of ``shell``."""
    return ask(shell, desired.probes())


def ask(shell: RootShell, probes: Sequence[Probe], *, timeout_s: float = probing.OBSERVE_TIMEOUT_S) -> Facts:
    """Run probes on the host of ``shell``, and return the answers. Only probes that need root run as root.

    A probe that hangs is killed, and has no answer (``Facts.late``).
    """
    answers: dict[Probe, Answer] = {}
    deadline, rounds = Deadline(timeout_s), 0
    while left := [probe for probe in probes if probe not in answers]:
        if rounds == MOST_ROUNDS:
            raise ProtocolError(shell.host, f"more than {rounds} answers of the host are too long; they were discarded")
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
        raise ProtocolError(shell.host, "the host sent far more output than expected; its answers were discarded")
    return probing.parse(probes, nonce, output.stdout, shell.host, alone=alone)
