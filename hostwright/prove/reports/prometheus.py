"""Proofs as a file for node_exporter's textfile collector on the machine that proves the fleet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hostwright.audit.reports.prometheus import label
from hostwright.prove.fleetproof import WORST_FIRST, FleetProof
from hostwright.prove.model import Outcome

OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "no GPU", "not run")


def render_prometheus(fleet: FleetProof) -> str:
    """The proofs in the text exposition format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(fleet))
    return generate_latest(registry).decode("utf-8")


class _Metrics(Collector):
    """The metrics of one run of proofs."""

    def __init__(self, fleet: FleetProof):
        self._fleet = fleet

    def collect(self) -> Iterator[Metric]:
        yield from (_status(self._fleet), _outcomes(self._fleet), _figures(self._fleet), _findings(self._fleet))
        began = GaugeMetricFamily("hostwright_prove_timestamp_seconds", "When the proofs began, Unix time")
        began.add_metric([], datetime.fromisoformat(self._fleet.at).timestamp())
        took = GaugeMetricFamily("hostwright_prove_duration_seconds", "How long the proofs took")
        took.add_metric([], self._fleet.took_s)
        yield from (began, took)


def _status(fleet: FleetProof) -> Metric:
    family = GaugeMetricFamily("hostwright_prove_host_status", "1 for the host's status", labels=["host", "status"])
    for host in fleet.hosts:
        for status in WORST_FIRST:
            family.add_metric([label(host.host), status], float(host.status == status))
    return family


def _outcomes(fleet: FleetProof) -> Metric:
    labels = ["host", "proof", "outcome"]
    family = GaugeMetricFamily("hostwright_proof_outcome", "1 for the outcome of the proof", labels=labels)
    for host in fleet.hosts:
        for result in host.results:
            for outcome in OUTCOMES:
                family.add_metric([label(host.host), result.proof, outcome], float(result.outcome == outcome))
    return family


def _figures(fleet: FleetProof) -> Metric:
    labels = ["host", "proof", "name", "device", "unit"]
    family = GaugeMetricFamily("hostwright_proof_figure", "What a proof measured on a device", labels=labels)
    for host in fleet.hosts:
        for result in host.results:
            for one in result.measurements:
                if one.number is not None:
                    values = (host.host, result.proof, one.name, one.device, one.unit)
                    family.add_metric([label(value) for value in values], one.number)
    return family


def _findings(fleet: FleetProof) -> Metric:
    labels = ["host", "proof", "severity"]
    family = GaugeMetricFamily("hostwright_proof_findings", "How many findings a proof has", labels=labels)
    for host in fleet.hosts:
        for result in host.results:
            for severity in ("failed", "outlier", "note"):
                number = sum(finding.severity == severity for finding in result.findings)
                family.add_metric([label(host.host), result.proof, severity], float(number))
    return family
