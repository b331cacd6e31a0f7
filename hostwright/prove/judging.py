"""Judges the measurements of one host, on their own and against the host's baseline. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hostwright.common.errors import InputError
from hostwright.common.text import short
from hostwright.inventory import Host
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.job import HOTTEST
from hostwright.prove.model import CPU, NO_GPU, Better, Expected, Measurement, Proof, ProofFinding, ProofResult
from hostwright.prove.reading import Printed

#: largest loss of a figure that is not reported, as a fraction of the host's own baseline (our choice)
MAX_LOSS = 0.10
LEAST_NOTED = MAX_LOSS  #: smallest improvement to report of a figure measured again, as a fraction of the first value
VARIABLE = "hostwright_prove_max_loss"


def read_max_loss(host: Host) -> float:
    """Return the largest loss of a figure that is not reported, as a fraction of the baseline: 0.15 for ``15%``.

    Raises ``InputError`` if the host's variable is not a percentage from 1% to 99%.
    """
    value = host.get(VARIABLE)
    if value is None:
        return MAX_LOSS
    digits = value.removesuffix("%").strip() if isinstance(value, str) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 2 and int(digits) > 0 and "%" in value):
        raise InputError(
            f"{VARIABLE}: found {value!r:.40}, expected a percentage from 1% to 99%", host.vars[VARIABLE].origin.exact
        )
    return int(digits) / 100


@dataclass(frozen=True, slots=True)
class Kept:
    """A baseline figure of a host: its value, and the time when it was stored (UTC, ISO 8601)."""

    at: str
    value: float


Baseline = Mapping[tuple[str, str, str], Kept]  #: proof, measurement and device → baseline figure for this key


def judged(proof: Proof, printed: Printed, expected: Expected, took_s: float) -> ProofResult:
    """Judge the output ``printed`` of a proof's program on its own, without earlier figures or other hosts."""
    measured = replace(printed.measurements, each=tuple(_placed(one, expected) for one in printed.measurements))
    base = ProofResult(proof.key, "passed", "", took_s, proof.program.sha256, measured.each)
    trouble = printed.broken or next(iter(printed.errors), "") or ("" if printed.ended else "the output is incomplete")
    if trouble:
        return replace(base, outcome="failed", sentence=trouble)
    if printed.not_run:
        return replace(base, outcome="not run", sentence=printed.not_run)
    own = [one.device for one in measured if one.name != HOTTEST]
    if own and all(device == NO_GPU for device in own):
        if proof.needs_gpu and expected.cards:  # In a container without device files, no program can use the cards.
            sentence = f"the program cannot use any of the cards that the driver lists ({len(expected.cards)})"
            return replace(base, outcome="failed", sentence=sentence)
        return replace(base, outcome="no GPU")
    try:
        found = tuple(replace(finding, proof=proof.key) for finding in proof.judge(measured, expected))
    # A host may print any text, and the role's function ``judge`` may then raise any of these errors.
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        return replace(base, outcome="failed", sentence=f"the figures cannot be judged: {short(repr(error))}")
    return with_findings(base, found)


def with_findings(result: ProofResult, found: Iterable[ProofFinding]) -> ProofResult:
    """Return ``result`` with the findings ``found``. A passed proof fails if one of them is not a note."""
    findings = (*result.findings, *found)
    bad = [finding for finding in findings if finding.severity != "note"]
    if not bad or result.outcome != "passed":
        return replace(result, findings=findings)
    return replace(result, findings=findings, outcome="failed", sentence=bad[0].sentence)


def _placed(measurement: Measurement, expected: Expected) -> Measurement:
    """Add the processor's model to the device ``cpu``, because only hosts with the same model are compared."""
    if measurement.device == CPU and expected.processor:
        return replace(measurement, device=f"{CPU} ({expected.processor})")
    return measurement


def against_baseline(host: HostProof, baseline: Baseline, max_loss: float) -> HostProof:
    """Add a finding to the results of ``host`` for each figure that is worse than its baseline by more than
    ``max_loss``.
    """

    def found(result: ProofResult) -> Iterator[ProofFinding]:
        for one in result.measurements:
            kept = baseline.get((result.proof, one.name, one.device))
            if kept is None or one.number is None or not one.better:
                continue
            loss = lost_part(one.number, kept.value, one.better)
            if loss > max_loss:
                sentence = (
                    f"{one.name} on {one.device} is {loss:.0%} worse than its baseline. Measured: "
                    f"{shown(one.number, one.unit)}; baseline of {kept.at[:10]}: {shown(kept.value, one.unit)}"
                )
                was = shown(kept.value, one.unit)
                yield ProofFinding(sentence, one.device, "failed", shown(one.number, one.unit), was, result.proof)

    return each(host, found)


def doubtful(host: HostProof, compared: HostProof) -> frozenset[str]:
    """Return the keys of proofs that passed in ``host`` but failed in ``compared``, the same results after a
    comparison.
    """
    pairs = zip(host.results, compared.results, strict=True)
    return frozenset(one.proof for one, other in pairs if one.outcome == "passed" and other.outcome == "failed")


def measured_again(first: HostProof, second: HostProof) -> HostProof:
    """Return the results ``first`` of a host with the better figures of a second run ``second``.

    A proof that failed in ``second`` is failed. A proof that was not run in ``second`` keeps its result.
    """
    later = {result.proof: result for result in second.results if result.outcome in {"passed", "failed"}}
    return replace(first, results=tuple(_better_of(one, later.get(one.proof, one)) for one in first.results))


def _better_of(first: ProofResult, second: ProofResult) -> ProofResult:
    if second is first or second.outcome == "failed":
        return second
    again = {(one.name, one.device): one for one in second.measurements}
    measurements, notes = [], []
    for one in first.measurements:
        other = again.get((one.name, one.device), one)
        better = one.better and one.number is not None and other.number is not None
        lost = lost_part(one.number, other.number, one.better) if better else 0.0  # type: ignore[arg-type]
        measurements.append(other if lost > 0 else one)
        if lost > LEAST_NOTED:
            was, now = shown(one.number or 0.0, one.unit), shown(other.number or 0.0, one.unit)
            sentence = f"{one.name} on {one.device} is not reproducible: {was} at first, {now} when measured again"
            notes.append(ProofFinding(sentence, one.device, "note", was, now, first.proof))
    return replace(first, measurements=tuple(measurements), findings=(*first.findings, *notes))


def each(host: HostProof, found: Callable[[ProofResult], Iterable[ProofFinding]]) -> HostProof:
    """Return ``host`` with the findings that ``found`` returns for each of its results."""
    return replace(host, results=tuple(with_findings(result, found(result)) for result in host.results))


def lost_part(now: float, then: float, better: Better) -> float:
    """Return the fraction of ``then`` by which the figure ``now`` is worse; negative if it is better."""
    if then == 0:
        return 0.0 if now == 0 or (better == "more") == (now > 0) else 1.0
    return ((then - now) if better == "more" else (now - then)) / abs(then)


def shown(value: float, unit: str) -> str:
    """Return a figure as text with four significant digits (more from 10,000 on) and its unit.

    >>> [shown(12345.678, "MB/s"), shown(0.98765, "")]
    ['12346 MB/s', '0.9877']
    """
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()
