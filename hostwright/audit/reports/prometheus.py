"""An audit as a file for node_exporter's textfile collector on the machine that audits the fleet."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hostwright.audit.fleetaudit import WORST_FIRST, FleetAudit, HostAudit
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS
from hostwright.common.text import printable

VALUE_CHARACTERS = 120  #: of a label: each different value is another time series


def render_prometheus(audit: FleetAudit) -> str:
    """The audit in the text exposition format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(audit))
    return generate_latest(registry).decode("utf-8")


class _Metrics(Collector):
    """The metrics of one audit."""

    def __init__(self, audit: FleetAudit):
        self._audit = audit

    def collect(self) -> Iterator[Metric]:
        hosts = self._audit.hosts
        yield from (_host_status(hosts), _host_ok(hosts), _layers(hosts), _readings(hosts), _findings(hosts))
        yield from (_gpu_info(hosts), *_gpu_gauges(hosts), _xids(hosts), _aged(hosts))
        began = GaugeMetricFamily("hostwright_audit_timestamp_seconds", "When the audit began, Unix time")
        began.add_metric([], datetime.fromisoformat(self._audit.at).timestamp())
        took = GaugeMetricFamily("hostwright_audit_duration_seconds", "How long the audit took")
        took.add_metric([], self._audit.took_s)
        yield from (began, took)


def _host_status(hosts: tuple[HostAudit, ...]) -> Metric:
    family = GaugeMetricFamily("hostwright_host_status", "1 for the status of the host", labels=["host", "status"])
    for host in hosts:
        for status in WORST_FIRST:
            if status != "warning":
                family.add_metric([label(host.host), status], float(host.status == status))
    return family


def _host_ok(hosts: tuple[HostAudit, ...]) -> Metric:
    family = GaugeMetricFamily("hostwright_host_ok", "1 where the host is as desired", labels=["host", "stack"])
    for host in hosts:
        family.add_metric([label(host.host), host.stack], float(host.status == "desired"))
    return family


def _layers(hosts: tuple[HostAudit, ...]) -> Metric:
    family = GaugeMetricFamily("hostwright_layer_ok", "1 where the layer is as desired", labels=["host", "layer"])
    for host in hosts:
        for layer in host.layers:
            family.add_metric([label(host.host), layer.name], float(layer.status in {"desired", "warning"}))
    return family


def _readings(hosts: tuple[HostAudit, ...]) -> Metric:
    labels = ["host", "layer", "name", "have", "want"]
    text = "A value read on the host; 1 where it is the stack's or no stack pins it"
    family = GaugeMetricFamily("hostwright_reading_ok", text, labels=labels)
    for host in hosts:
        for reading in host.readings:
            values = [
                label(text) for text in (host.host, reading.layer, reading.name, reading.have, reading.want or "")
            ]
            family.add_metric(values, float(not reading.differs))
    return family


def _findings(hosts: tuple[HostAudit, ...]) -> Metric:
    labels = ["host", "layer", "rule", "grave"]
    family = GaugeMetricFamily("hostwright_finding", "1 for each known failure that was recognised", labels=labels)
    for host in hosts:
        for finding in host.findings:
            family.add_metric([label(host.host), finding.layer, finding.rule, str(finding.grave).lower()], 1.0)
    return family


def _aged(hosts: tuple[HostAudit, ...]) -> Metric:
    text = "1 for software on the host that gets no fixes any more, or is older than a bulletin's or the newest series"
    family = GaugeMetricFamily("hostwright_aged", text, labels=["host", "product", "version", "kind"])
    for host in hosts:
        for one in host.aged:
            family.add_metric([label(text) for text in (host.host, one.product, one.version, one.kind)], 1.0)
    return family


def _gpu_info(hosts: tuple[HostAudit, ...]) -> Metric:
    labels = ["host", "gpu", "bus", "model", "uuid", "serial", "vbios"]
    family = GaugeMetricFamily("hostwright_gpu_info", "1 for each card", labels=labels)
    for host in hosts:
        for gpu in host.gpus:
            values = (host.host, str(gpu.index), gpu.bus, gpu.model, gpu.uuid, gpu.serial, gpu.vbios)
            family.add_metric([label(text) for text in values], 1.0)
    return family


def _gpu_gauges(hosts: tuple[HostAudit, ...]) -> Iterator[Metric]:
    for gauge in sorted(filter(None, (column.gauge for column in GPU_COLUMNS)), key=lambda gauge: gauge.name):
        kinds = [kind for kind in gauge.numbers(Gpu(0, "")) if kind]
        family = GaugeMetricFamily(gauge.name, gauge.help, labels=["host", "gpu", *(["kind"] if kinds else [])])
        for host in hosts:
            for gpu in host.gpus:
                for kind, value in gauge.numbers(gpu).items():
                    if value is not None:
                        family.add_metric([label(host.host), str(gpu.index), *([kind] if kind else [])], float(value))
        yield family


def _xids(hosts: tuple[HostAudit, ...]) -> Metric:
    text = "Xids in the kernel log of the last seven days"
    family = GaugeMetricFamily("hostwright_xids", text, labels=["host", "bus", "xid"])
    for host in hosts:
        for event in host.xids:
            family.add_metric([label(host.host), label(event.bus), str(event.number)], float(event.count))
    return family


def label(text: str) -> str:
    """Text of a host as a label: one line of bounded length."""
    return " ".join(printable(text[: 2 * VALUE_CHARACTERS]).split())[:VALUE_CHARACTERS]
