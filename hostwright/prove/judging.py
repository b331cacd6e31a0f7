"""What measurements show: of one host alone, against its baseline, and against its twins. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from hostwright.common.text import short
from hostwright.prove.fleetproof import HostProof
from hostwright.prove.model import CPU, NO_GPU, Better, Expected, Measurement, Proof, ProofFinding, ProofResult
from hostwright.prove.reading import Printed
from hostwright.prove.twins import FEWEST, LEAST_PART, SIGMA_OF_MAD, SIGMAS, Outlier, outliers

MAX_LOSS = 0.10  #: our choice, of a figure against its baseline, which is the host's own: it varies less than twins do
LEAST_NOTED = MAX_LOSS  #: a figure that is better by more than this part when it is measured again is told
#: How many twins are measured again with a host that is worse than they are. Our choice: their median stands when one
#: of them meets a pause of its own.
WITNESSES = 3
FEWEST_WITNESSES = 2  #: that answered: one alone may be slow by itself
#: how twins are compared, for reports
STATISTICS = (
    f"hosts with the same model of device, {FEWEST} or more: an outlier is worse than their median by more than "
    f"{SIGMAS:g} standard deviations (of the logarithms: MAD × {SIGMA_OF_MAD}) and {LEAST_PART:.0%} of the median, "
    f"and measured again by {LEAST_PART:.0%} worse than those that are measured again with it"
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A figure to which a host is held: when it was kept (UTC, ISO 8601), and its value."""

    at: str
    value: float


#: proof, measurement and device → what is kept of it
Baseline = Mapping[tuple[str, str, str], Kept]


def judged(proof: Proof, printed: Printed, expected: Expected, took_s: float) -> ProofResult:
    """The result of a program that came to its end, whatever it printed."""
    measured = replace(printed.measurements, each=tuple(_placed(one, expected) for one in printed.measurements))
    base = ProofResult(proof.key, "passed", "", took_s, proof.program.sha256, measured.each)
    trouble = printed.broken or next(iter(printed.errors), "") or ("" if printed.ended else "it ended before its end")
    if trouble:
        return replace(base, outcome="failed", sentence=trouble)
    if printed.not_run:
        return replace(base, outcome="not run", sentence=printed.not_run)
    if len(measured) and all(one.device == NO_GPU for one in measured):
        return replace(base, outcome="no GPU")
    try:
        found = tuple(replace(finding, proof=proof.key) for finding in proof.judge(measured, expected))
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:  # what a host printed is anything
        return replace(base, outcome="failed", sentence=f"its figures cannot be judged: {short(repr(error))}")
    return with_findings(base, found)


def with_findings(result: ProofResult, found: Iterable[ProofFinding]) -> ProofResult:
    """The result with further findings; one that is more than a note makes it fail."""
    findings = (*result.findings, *found)
    bad = [finding for finding in findings if finding.severity != "note"]
    if not bad or result.outcome != "passed":
        return replace(result, findings=findings)
    return replace(result, findings=findings, outcome="failed", sentence=bad[0].sentence)


def _placed(measurement: Measurement, expected: Expected) -> Measurement:
    """A bare ``cpu`` with the host's model of processor, so that twins are told apart."""
    if measurement.device == CPU and expected.processor:
        return replace(measurement, device=f"{CPU} ({expected.processor})")
    return measurement


def against_baseline(host: HostProof, baseline: Baseline, max_loss: float) -> HostProof:
    """The host with a finding for each figure that is worse than the one to which it is held, by more than a part."""

    def found(result: ProofResult) -> Iterator[ProofFinding]:
        for one in result.measurements:
            kept = baseline.get((result.proof, one.name, one.device))
            if kept is None or one.number is None or not one.better:
                continue
            loss = _loss(one.number, kept.value, one.better)
            if loss > max_loss:
                sentence = (
                    f"{one.name} on {one.device} is {loss:.0%} worse than the baseline of {kept.at[:10]}: "
                    f"{shown(one.number, one.unit)}, was {shown(kept.value, one.unit)}"
                )
                was = shown(kept.value, one.unit)
                yield ProofFinding(sentence, one.device, "failed", shown(one.number, one.unit), was, result.proof)

    return _each(host, found)


#: what is compared with each other: proof, name, model of device, and rank among a host's devices of that model
_Key = tuple[str, str, str, int]
_Groups = Mapping[_Key, Mapping[str, Measurement]]


def against_twins(hosts: Iterable[HostProof], again: Sequence[Collection[HostProof]] = ()) -> tuple[HostProof, ...]:
    """The hosts, with a finding where one is worse than those with the same model of device (``twins``).

    A host with several such cards is compared by each of them, with its position among its own: the worst card of a
    host with the worst of the others, and so on, so that a host counts once.

    ``again`` is what hosts came to when they were measured again, those of each time together. One that was then as
    good as the twins beside it has a note instead of the finding: what had slowed it slows them, too.
    """
    hosts = tuple(hosts)
    later = [_groups(_passed(host) for host in some) for some in again]
    found: dict[tuple[str, str], list[ProofFinding]] = defaultdict(list)
    for key, group in _groups(hosts).items():
        better = next(iter(group.values())).better
        if not better:
            continue
        worse = outliers({name: one.number for name, one in group.items() if one.number is not None}, better)
        names = {outlier.host for outlier in worse}
        sound = [{name: one for name, one in some.get(key, {}).items() if name not in names} for some in later]
        for outlier in worse:
            one = group[outlier.host]
            times = (
                (some[key][outlier.host], others)
                for some, others in zip(later, sound, strict=True)
                if outlier.host in some.get(key, {})
            )
            alike = next(filter(None, (_alike(key, outlier, own, others.values()) for own, others in times)), None)
            found[outlier.host, key[0]].append(alike or _outlier(key, one, outlier))
    return tuple(_each(host, lambda result, host=host: found.get((host.host, result.proof), ())) for host in hosts)  # type: ignore[misc]


def witnesses(hosts: Iterable[HostProof], doubts: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Who is to be measured again with hosts that are worse than their twins, and by which proofs.

    Of each model of device, the ``WITNESSES`` sound hosts whose figures are the closest to the median. ``doubts``: host
    → the proofs that it is measured by again.
    """
    hosts = tuple(hosts)
    passed = {(host.host, result.proof) for host in hosts for result in host.results if result.outcome == "passed"}
    outlying = {
        (host.host, finding.proof)
        for host in hosts
        for result in host.results
        for finding in result.findings
        if finding.severity == "outlier"
    }
    chosen: dict[tuple[str, str], list[str]] = {}
    for (proof, _, model, _), group in _groups(hosts).items():
        if (proof, model) in chosen or not any(proof in doubts.get(name, ()) for name in group):
            continue
        if not any((name, proof) in outlying for name in group):
            continue
        middle = median(one.number for one in group.values() if one.number is not None)
        sound = [name for name in group if (name, proof) in passed and proof not in doubts.get(name, ())]
        chosen[proof, model] = sorted(sound, key=lambda name: abs((group[name].number or 0.0) - middle))[:WITNESSES]
    beside: dict[str, dict[str, None]] = defaultdict(dict)
    for (proof, _), names in chosen.items():
        for name in names:
            beside[name][proof] = None
    return {name: tuple(proofs) for name, proofs in beside.items()}


def _groups(hosts: Iterable[HostProof]) -> _Groups:
    """What is compared with each other, by host."""
    groups: dict[_Key, dict[str, Measurement]] = defaultdict(dict)
    for host in hosts:
        for key, one in _ranked(host):
            groups[key][host.host] = one
    return groups


def _passed(host: HostProof) -> HostProof:
    return replace(host, results=tuple(result for result in host.results if result.outcome == "passed"))


def _alike(key: _Key, outlier: Outlier, own: Measurement, twins: Iterable[Measurement]) -> ProofFinding | None:
    """A note where a host that was measured again is within ``LEAST_PART`` of the median of sound twins beside it."""
    others = [one.number for one in twins if one.number is not None]
    if own.number is None or not own.better or len(others) < FEWEST_WITNESSES:
        return None
    middle = median(others)
    if _loss(own.number, middle, own.better) > LEAST_PART:
        return None
    now, theirs = shown(own.number, own.unit), shown(middle, own.unit)
    sentence = (
        f"{own.name} on {own.device} is {outlier.part:.0%} worse than the median of {outlier.twins} hosts; "
        f"measured again with {len(others)} of them it was {now}, and they were {theirs}"
    )
    return ProofFinding(sentence, own.device, "note", now, theirs, key[0])


def _ranked(host: HostProof) -> Iterator[tuple[_Key, Measurement]]:
    """A host's comparable figures: proof, name, model and rank, the worst device of a model first."""
    alike: dict[tuple[str, str, str], list[Measurement]] = defaultdict(list)
    for result in host.results:
        for one in result.measurements:
            if one.better and one.number is not None and one.device != NO_GPU:
                alike[result.proof, one.name, one.model].append(one)
    for key, several in alike.items():
        worst_first = sorted(several, key=lambda one: one.number or 0.0, reverse=several[0].better == "less")
        yield from (((*key, rank), one) for rank, one in enumerate(worst_first))


def _outlier(key: _Key, one: Measurement, outlier: Outlier) -> ProofFinding:
    proof, _, model, _ = key
    sentence = (
        f"{one.name} on {one.device} is {outlier.part:.0%} worse than the median of {outlier.twins} hosts with "
        f"{model}: {shown(outlier.value, one.unit)}, median {shown(outlier.median, one.unit)}"
    )
    expected = f"{shown(outlier.median, one.unit)} ± {outlier.sigma:.0%}"
    return ProofFinding(sentence, one.device, "outlier", shown(outlier.value, one.unit), expected, proof)


def doubtful(host: HostProof, compared: HostProof) -> frozenset[str]:
    """The proofs of a host that passed alone, and have findings only since they were compared."""
    pairs = zip(host.results, compared.results, strict=True)
    return frozenset(one.proof for one, other in pairs if one.outcome == "passed" and other.outcome == "failed")


def measured_again(first: HostProof, second: HostProof) -> HostProof:
    """The first results with the better of two figures, where a proof passed a second time.

    A host that was busy for a moment is slow once, one that is slow is so twice. A second time that failed counts; one
    that was not run does not.
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
        lost = _loss(one.number, other.number, one.better) if better else 0.0  # type: ignore[arg-type]
        measurements.append(other if lost > 0 else one)
        if lost > LEAST_NOTED:
            was, now = shown(one.number or 0.0, one.unit), shown(other.number or 0.0, one.unit)
            sentence = f"{one.name} on {one.device} was {was} at first, and {now} when it was measured again"
            notes.append(ProofFinding(sentence, one.device, "note", was, now, first.proof))
    return replace(first, measurements=tuple(measurements), findings=(*first.findings, *notes))


def _each(host: HostProof, found: Callable[[ProofResult], Iterable[ProofFinding]]) -> HostProof:
    return replace(host, results=tuple(with_findings(result, found(result)) for result in host.results))


def _loss(now: float, then: float, better: Better) -> float:
    """By how much of ``then`` it is worse; negative where it is better."""
    if then == 0:
        return 0.0 if now == 0 or (better == "more") == (now > 0) else 1.0
    return ((then - now) if better == "more" else (now - then)) / abs(then)


def shown(value: float, unit: str) -> str:
    """A figure for people: four digits, and its unit.

    >>> [shown(12345.678, "MB/s"), shown(0.98765, "")]
    ['12346 MB/s', '0.9877']
    """
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()
