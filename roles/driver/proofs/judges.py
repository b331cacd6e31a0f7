"""What DCGM's diagnosis and the places of cards show. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from hostwright.proofs import MODEL, Expected, Measurements, ProofFinding, Severity
from hostwright.standard.roles.driver.gpus import same_model


def diagnostics(measured: Measurements, _expected: Expected) -> tuple[ProofFinding, ...]:
    """Tests of DCGM that did not pass; its warnings are notes, as in facebookresearch/gcm. So is what it says beside a
    pass: it could not test all that it should (NVIDIA/DCGM#284)."""
    results = [one for one in measured if one.name.startswith("dcgm ") and not one.name.endswith(" warning")]
    warnings = {(one.name, one.device): f": {one.value}" for one in measured if one.name.endswith(" warning")}
    findings = []
    for one in results:
        why = warnings.get((f"{one.name} warning", one.device), "")
        if one.value == "skip" or (one.value == "pass" and not why):
            continue
        test = one.name.removeprefix("dcgm ")
        harmless = one.value in {"pass", "warn"}  # an unknown word is no sign of health
        severity: Severity = "note" if harmless else "failed"
        findings.append(ProofFinding(f"DCGM's {test}: {one.value}{why}", one.device, severity, str(one.value), "pass"))
    return tuple(findings)


def placement(measured: Measurements, expected: Expected) -> tuple[ProofFinding, ...]:
    """Cards of another model than the inventory's, and, as notes, cards whose data take a way through another
    processor; the latter only with several NUMA nodes."""
    far = tuple(_far(measured)) if (measured.number("numa nodes") or 0) > 1 else ()
    return (*_others(expected), *far)


def _others(expected: Expected) -> Iterator[ProofFinding]:
    for card in expected.cards or ():
        if card.model and expected.models and not any(same_model(card.model, model) for model in expected.models):
            sentence = f"the card at {card.bus} is of another model than the inventory says ({MODEL})"
            device = f"{card.uuid} ({card.model})"
            yield ProofFinding(sentence, device, "failed", card.model, " or ".join(expected.models))


def _far(measured: Measurements) -> Iterator[ProofFinding]:
    untold = {one.device for one in measured.named("numa node") if one.number == -1}
    for device in sorted(untold):
        sentence = "the firmware does not tell on which NUMA node the card is: its data may cross between processors"
        yield ProofFinding(sentence, device, "note", "not told", "a node")
    for one in measured.named("network adapter on its node"):
        if one.value == "no" and one.device not in untold:
            sentence = "no network adapter is on the card's NUMA node: its traffic crosses between processors"
            yield ProofFinding(sentence, one.device, "note", "none", "one")
