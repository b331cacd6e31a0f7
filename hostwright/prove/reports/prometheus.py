"""The results of proofs as a metrics file, for node_exporter's textfile collector on the machine that runs
Hostwright.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from hostwright.audit.reports.prometheus import exposition, gauge, took
from hostwright.prove.fleetproof import WORST_FIRST, FleetProof
from hostwright.prove.model import Outcome

OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "no GPU", "not run")


def render_prometheus(fleet: FleetProof) -> str:
    """Return the results of proofs in the text exposition format of Prometheus."""
    return exposition((*_metrics(fleet), *took("hostwright_prove", "the proofs", fleet.at, fleet.took_s)))


def _metrics(fleet: FleetProof) -> Iterator[Metric]:
    results = [(host.host, result) for host in fleet.hosts for result in host.results]
    yield gauge(
        "hostwright_prove_host_status", "1 for the host's status", "host status",
        (((host.host, status), host.status == status) for host in fleet.hosts for status in WORST_FIRST),
    )  # fmt: skip
    yield gauge(
        "hostwright_proof_outcome", "1 for the outcome of the proof", "host proof outcome",
        (((host, result.proof, one), result.outcome == one) for host, result in results for one in OUTCOMES),
    )  # fmt: skip
    yield gauge(
        "hostwright_proof_figure", "Measurement of a proof on a device", "host proof name device unit",
        (
            ((host, result.proof, one.name, one.device, one.unit), one.number)
            for host, result in results for one in result.measurements if one.number is not None
        ),
    )  # fmt: skip
    yield gauge(
        "hostwright_proof_findings", "Number of findings of a proof", "host proof severity",
        (
            ((host, result.proof, severity), sum(finding.severity == severity for finding in result.findings))
            for host, result in results for severity in ("failed", "outlier", "note")
        ),
    )  # fmt: skip
