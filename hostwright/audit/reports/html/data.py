"""The details of hosts as compact JSON values for the script of the HTML page. All functions are pure.

Values that many hosts share (names and desired values of readings, known failures, failed checks) are stored once in a
table. Hosts refer to these values by index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from hostwright.audit.fleetaudit import Deviation, FleetAudit, HostAudit, NotChecked, Reading
from hostwright.audit.hardware.gpu import Gpu, GpuEvent, GpuProcess
from hostwright.audit.hardware.gpucolumns import GPU_COLUMNS
from hostwright.audit.reports.ages import Ages
from hostwright.audit.reports.html.commands import commands
from hostwright.audit.reports.html.text import clean, first, moment, name
from hostwright.audit.reports.table import SHOWN, WORDS
from hostwright.common.errors import Finding

T = TypeVar("T")

#: maximum length of each list of a host. A host may report thousands of GPUs.
LIMITS = {"readings": 400, "deviations": 200, "findings": 100, "gpus": 32, "xids": 100, "notChecked": 200}
FEW = 20  #: maximum number of texts to list for a host, and of processes for a GPU
GROUPS = 100  #: maximum number of groups of a host that the page's filter searches


class ValueTable:
    """A table of distinct values, each with an index."""

    def __init__(self) -> None:
        self._places: dict[Any, int] = {}

    def place(self, value: Any) -> int:
        """Return the index of ``value``, which must be hashable. A new value is added to the table."""
        return self._places.setdefault(value, len(self._places))

    @property
    def values(self) -> list[Any]:
        """All values in the order of their indexes."""
        return list(self._places)


class Details:
    """Creates the JSON values for hosts, and collects in tables the values that the hosts share."""

    def __init__(self, audit: FleetAudit, ages: Ages, options: str):
        self._ages, self._options = ages, options
        self._layers = audit.layers
        self._shapes, self._rules, self._shared, self._gpu_values = (ValueTable() for _ in range(4))

    def of(self, hosts: Sequence[HostAudit]) -> dict[str, Any]:
        """Return the data of ``hosts`` and the shared tables, for the script of the HTML page."""
        described = [self._host(host) for host in hosts]
        return {
            "statuses": {
                status: [sign, word or WORDS[status], WORDS[status]] for status, (sign, word, _) in SHOWN.items()
            },
            "layers": [name(layer) for layer in self._layers],
            "gpuColumns": [column.name for column in GPU_COLUMNS],
            "gpuValues": self._gpu_values.values,
            "shapes": self._shapes.values,
            "rules": self._rules.values,
            "shared": self._shared.values,
            "hosts": described,
        }

    def _host(self, host: HostAudit) -> dict[str, Any]:
        statuses = {layer.name: layer.status for layer in host.layers}
        fields = {
            "name": name(host.host),
            "status": host.status,
            "stack": name(host.stack),
            "at": moment(host.at),
            "since": self._since(host, "status", ""),
            "sentence": clean(host.sentence),
            "layers": self._shared.place(tuple(statuses.get(layer, "absent") for layer in self._layers)),
            "groups": self._shared.place(tuple(map(name, host.groups[:GROUPS]))),
            "standIns": self._shared.place(tuple(_few(host.stand_ins))),
            "record": _record(host),
            "commands": commands(host, self._options),
            **self._lists(host),
        }
        return {key: value for key, value in fields.items() if value not in ("", None, [], {})}

    def _lists(self, host: HostAudit) -> dict[str, Any]:
        cut: dict[str, int] = {}

        def limited(key: str, items: Iterable[T]) -> list[T]:
            kept, more = first(items, LIMITS[key])
            cut.update({key: more} if more else {})
            return kept

        readings = limited("readings", host.readings)
        return {
            "shape": self._shapes.place(
                tuple((name(reading.layer), name(reading.name), _want(reading)) for reading in readings)
            ),
            "have": [clean(reading.have) for reading in readings],
            "differs": [place for place, reading in enumerate(readings) if reading.differs],
            "deviations": [self._deviation(host, deviation) for deviation in limited("deviations", host.deviations)],
            "findings": [
                self._finding(host, finding) for finding in limited("findings", sorted(host.findings, key=_gravest))
            ],
            "gpus": [self._gpu(gpu) for gpu in limited("gpus", host.gpus)],
            "xids": [self._xid(xid) for xid in limited("xids", host.xids)],
            "notChecked": self._shared.place(tuple(map(_check, limited("notChecked", host.not_checked)))),
            "notes": _few(host.notes),
            "cut": cut,
        }

    def _deviation(self, host: HostAudit, deviation: Deviation) -> list[str]:
        since = self._since(host, "deviation", f"{deviation.layer} {deviation.what}")
        return [
            name(deviation.layer),
            clean(deviation.what),
            clean(deviation.have),
            clean(deviation.want),
            deviation.why,
            since,
        ]

    def _finding(self, host: HostAudit, finding: Finding) -> list[Any]:
        texts = (clean(finding.cause), clean(finding.cure), finding.provision, name(finding.link))
        place = self._rules.place((name(finding.rule), name(finding.layer), finding.grave, *texts))
        return [place, _few(finding.evidence), self._since(host, "finding", finding.rule)]

    def _gpu(self, gpu: Gpu) -> list[Any]:
        processes, more = first(gpu.processes, FEW)
        values = ((clean(column.text(gpu)), bool(column.bad(gpu))) for column in GPU_COLUMNS)
        return [
            gpu.index,
            name(gpu.bus),
            name(gpu.serial),
            name(gpu.uuid),
            [self._gpu_values.place(value) for value in values],
            [*map(_process, processes), *_left_out(more)],
        ]

    def _xid(self, event: GpuEvent) -> list[Any]:
        advice = self._shared.place((clean(event.meaning), clean(event.asks)))
        return [
            event.number,
            name(event.bus),
            moment(event.at) if event.at else "",
            clean(event.text),
            event.count,
            advice,
        ]

    def _since(self, host: HostAudit, kind: str, what: str) -> str:
        since: datetime | None = self._ages.get((host.host, kind, what))
        return since.date().isoformat() if since else ""


def details(audit: FleetAudit, hosts: Sequence[HostAudit], ages: Ages, options: str) -> Mapping[str, Any]:
    """Return the data of an HTML page that lists ``hosts`` in this order.

    ``options`` are appended to the commands on the page.
    """
    return Details(audit, ages, options).of(hosts)


def _want(reading: Reading) -> str | None:
    return None if reading.want is None else clean(reading.want)


def _check(skipped: NotChecked) -> tuple[str, str, str]:
    return name(skipped.layer), name(skipped.check), clean(skipped.reason)


def _gravest(finding: Finding) -> bool:
    return not finding.grave


def _few(texts: Sequence[str]) -> list[str]:
    kept, more = first(texts, FEW)
    return [*map(clean, kept), *([f"… and {more} more"] if more else [])]


def _record(host: HostAudit) -> list[str] | None:
    record = host.record
    return [name(record.stack), moment(record.at), name(record.run), name(record.operator)] if record else None


def _process(process: GpuProcess) -> list[Any]:
    return [process.pid, clean(process.name, 200), name(process.kind), process.memory_bytes]


def _left_out(more: int) -> list[list[Any]]:
    return [[None, f"… and {more} more", "", None]] if more else []
