"""Findings from DCGM's diagnosis and from the GPUs' NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.proofs import MODEL, Expected, Measurements, ProofFinding, Severity
from hostwright.standard.roles.driver.gpus import same_model


def diagnostics(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings about DCGM's tests that did not pass.

    A warning is only a note, even for a passed test, because DCGM could not run the whole test (NVIDIA/DCGM#284).
    """
    results = [one for one in measured if one.name.startswith("dcgm ") and not one.name.endswith(" warning")]
    warnings = {(one.name, one.device): f": {one.value}" for one in measured if one.name.endswith(" warning")}
    findings = []
    for one in results:
        why = warnings.get((f"{one.name} warning", one.device), "")
        if one.value == "skip" or (one.value == "pass" and not why):
            continue
        test = one.name.removeprefix("dcgm ")
        harmless = one.value in {"pass", "warn"}  # an unknown result does not prove a healthy GPU
        severity: Severity = "note" if harmless else "failed"
        findings.append(ProofFinding(f"DCGM's {test}: {one.value}{why}", one.device, severity, str(one.value), "pass"))
    return tuple(findings)


def placement(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Return findings about GPUs of another model than in the inventory.

    With several NUMA nodes, also return notes about GPUs with data that may cross to another processor.
    """
    far = tuple(_far(measured)) if (measured.number("numa nodes") or 0) > 1 else ()
    return (*_others(expected), *far)


def _others(expected: Expected) -> Iterator[ProofFinding]:
    for card in expected.cards or ():
        if card.model and expected.models and not any(same_model(card.model, model) for model in expected.models):
            sentence = f"the model of the card at {card.bus} differs from the inventory ({MODEL})"
            device = f"{card.uuid} ({card.model})"
            yield ProofFinding(sentence, device, "failed", card.model, " or ".join(expected.models))


def _far(measured: Measurements) -> Iterator[ProofFinding]:
    untold = {one.device for one in measured.named("numa node") if one.number == -1}
    for device in sorted(untold):
        sentence = "the firmware does not report the card's NUMA node: its data may cross between processors"
        yield ProofFinding(sentence, device, "note", "not reported", "a node")
    for one in measured.named("network adapter on its node"):
        if one.value == "no" and one.device not in untold:
            sentence = "no network adapter is on the card's NUMA node: its traffic crosses between processors"
            yield ProofFinding(sentence, one.device, "note", "none", "one")
