"""Repeats proofs of hosts whose figures are worse than the figures of peers or than the host's baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from hostwright.apply.events import Emit, Note
from hostwright.apply.rollout.rollout import Results
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.judging import doubtful, measured_again
from hostwright.prove.model import Proof
from hostwright.prove.peers.comparing import witnesses


def doubts_of(
    results: Results[HostProof], hosts: Collection[HostProof], due: Mapping[str, tuple[Proof, ...]]
) -> dict[str, tuple[Proof, ...]]:
    """Return the proofs to repeat, by host name: proofs that failed only in the comparison with peers or the baseline.

    ``results`` are the results before the comparison, ``hosts`` the results after it. ``due`` are all proofs that ran.
    """
    first = {host.host: host for host in results.values}
    keys = {host.host: doubtful(first[host.host], host) for host in hosts if host.host in first}
    proofs = {name: tuple(proof for proof in due[name] if proof.key in some) for name, some in keys.items()}
    return {name: some for name, some in proofs.items() if some}


def due_again(
    hosts: Collection[HostProof],
    doubts: Mapping[str, tuple[Proof, ...]],
    due: Mapping[str, tuple[Proof, ...]],
    emit: Emit,
) -> dict[str, tuple[Proof, ...]]:
    """Return host name → proofs to run again: the proofs ``doubts``, and the same proofs on some peers for comparison.

    ``due`` are the proofs of the first run. The first peer precedes the hosts in ``doubts``, and the other peers
    follow.
    """
    chosen = witnesses(hosts, {name: frozenset(proof.key for proof in proofs) for name, proofs in doubts.items()})
    beside = {name: tuple(proof for proof in due[name] if proof.key in keys) for name, keys in chosen.items()}
    for words, some in (("measured again", doubts), ("measured again for comparison", beside)):
        for name, proofs in some.items():
            emit(Note(name, f"{words}: {', '.join(proof.key for proof in proofs)}"))
    first, others = tuple(beside)[:1], tuple(beside)[1:]
    return {name: (*doubts.get(name, ()), *beside.get(name, ())) for name in (*first, *doubts, *others)}


def with_better(
    results: Results[HostProof], ran: Results[HostProof], doubts: Mapping[str, tuple[Proof, ...]]
) -> Results[HostProof]:
    """Return ``results`` with the better figures and all failures of the repetition ``ran``.

    If a host does not respond in the repetition, its first figures are kept.
    """
    second = {host.host: host for host in ran.values}

    def better(host: HostProof) -> HostProof:
        keys = {proof.key for proof in doubts.get(host.host, ())}
        later = second.get(host.host, replace(host, results=()))
        counting = tuple(one for one in later.results if one.proof in keys or one.outcome == "failed")
        return measured_again(host, replace(later, results=counting))

    values = tuple(better(host) for host in results.values)
    return replace(results, values=values, stopped_because=ran.stopped_because)
