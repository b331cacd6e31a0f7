"""An audit as a metrics file for node_exporter's textfile collector, on the machine that runs audits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hostwright.audit.fleetaudit import WORST_FIRST, FleetAudit, HostAudit
from hostwright.audit.hardware.gpu import Gpu
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS
from hostwright.common.text import printable

VALUE_CHARACTERS = 120  #: maximum number of characters of a label value


def render_prometheus(audit: FleetAudit) -> str:
    """Return ``audit`` in the text exposition format of Prometheus."""
    times = took("hostwright_audit", "the audit", audit.at, audit.took_s)
    return exposition((*_of_hosts(audit.hosts), *_of_gpus(audit.hosts), *times))


def exposition(metrics: Iterable[Metric]) -> str:
    """Return ``metrics`` in the text exposition format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Metrics(metrics))
    return generate_latest(registry).decode("utf-8")


class _Metrics(Collector):
    def __init__(self, metrics: Iterable[Metric]):
        self._metrics = tuple(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def gauge(name: str, text: str, labels: str, rows: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """Return a Prometheus gauge. ``labels`` are label names, separated by spaces; ``rows`` have label values and a
    number.
    """
    family = GaugeMetricFamily(name, text, labels=labels.split())
    for values, number in rows:
        family.add_metric([label(value) for value in values], float(number))
    return family


def took(name: str, what: str, at: str, took_s: float) -> Iterator[Metric]:
    """Yield two metrics: the time ``at`` when ``what`` began, and the duration in seconds."""
    began = datetime.fromisoformat(at).timestamp()
    yield gauge(f"{name}_timestamp_seconds", f"Start time of {what}, Unix time", "", [((), began)])
    yield gauge(f"{name}_duration_seconds", f"Duration of {what}", "", [((), took_s)])


def _of_hosts(hosts: tuple[HostAudit, ...]) -> Iterator[Metric]:
    statuses = [status for status in WORST_FIRST if status != "warning"]
    yield gauge(
        "hostwright_host_status", "1 for the status of the host", "host status",
        (((host.host, status), host.status == status) for host in hosts for status in statuses),
    )  # fmt: skip
    yield gauge(
        "hostwright_host_ok", "1 if the host is as desired", "host stack",
        (((host.host, host.stack), host.status == "desired") for host in hosts),
    )  # fmt: skip
    yield gauge(
        "hostwright_layer_ok", "1 if the layer is as desired", "host layer",
        (((host.host, one.name), one.status in {"desired", "warning"}) for host in hosts for one in host.layers),
    )  # fmt: skip
    yield gauge(
        "hostwright_reading_ok", "A value read on the host; 1 if it matches the stack or no stack pins it",
        "host layer name have want",
        (
            ((host.host, one.layer, one.name, one.have, one.want or ""), not one.differs)
            for host in hosts for one in host.readings
        ),
    )  # fmt: skip
    yield gauge(
        "hostwright_finding", "1 for each known failure that was recognised", "host layer rule grave",
        (((host.host, one.layer, one.rule, str(one.grave).lower()), 1) for host in hosts for one in host.findings),
    )  # fmt: skip


def _of_gpus(hosts: tuple[HostAudit, ...]) -> Iterator[Metric]:
    cards = [(host.host, gpu) for host in hosts for gpu in host.gpus]
    yield gauge(
        "hostwright_gpu_info", "1 for each card", "host gpu bus model uuid serial vbios",
        (((host, str(gpu.index), gpu.bus, gpu.model, gpu.uuid, gpu.serial, gpu.vbios), 1) for host, gpu in cards),
    )  # fmt: skip
    for one in sorted(filter(None, (column.gauge for column in GPU_COLUMNS)), key=lambda one: one.name):
        kinds = any(one.numbers(Gpu(0, "")))
        yield gauge(
            one.name, one.help, "host gpu kind" if kinds else "host gpu",
            (
                ((host, str(gpu.index), *([kind] if kind else [])), value)
                for host, gpu in cards for kind, value in one.numbers(gpu).items() if value is not None
            ),
        )  # fmt: skip
    yield gauge(
        "hostwright_xids", "Xids in the kernel log of the last seven days", "host bus xid",
        (((host.host, event.bus, str(event.number)), event.count) for host in hosts for event in host.xids),
    )  # fmt: skip
    yield gauge(
        "hostwright_aged",
        "1 for software that gets no more fixes, or is older than a bulletin requires or than the newest series",
        "host product version kind",
        (((host.host, one.product, one.version, one.kind), 1) for host in hosts for one in host.aged),
    )  # fmt: skip


def label(text: str) -> str:
    """Return ``text`` on one line of limited length, as a label value."""
    return " ".join(printable(text[: 2 * VALUE_CHARACTERS]).split())[:VALUE_CHARACTERS]
