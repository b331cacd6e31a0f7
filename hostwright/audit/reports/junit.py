"""An audit as JUnit XML for build servers: each host is a test suite, and each of its layers a test case."""

from __future__ import annotations

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from hostwright.audit.fleetaudit import FleetAudit, HostAudit, Layer
from hostwright.common.text import printable


def render_junit(audit: FleetAudit) -> str:
    """Return ``audit`` as JUnit XML.

    A layer that differs or fails is a failure; a layer that could not be read is an error.
    """
    document = JUnitXml("hostwright audit")
    for host in audit.hosts:
        suite = TestSuite(_clean(host.host))
        suite.timestamp = host.at
        for layer in host.layers:
            suite.add_testcase(_case(host, layer))
        document.add_testsuite(suite)
    document.update_statistics()
    text: bytes = document.tostring()
    return text.decode("utf-8")


def _case(host: HostAudit, layer: Layer) -> TestCase:
    case = TestCase(layer.name, classname=_clean(host.host), time=0.0)
    if layer.status == "unread":
        skipped = [unchecked.check for unchecked in host.not_checked if unchecked.layer == layer.name]
        case.result = [Error(_clean(host.sentence or f"not checked: {', '.join(skipped)}"), "unread")]
    elif layer.status not in {"desired", "warning"}:
        lines = _problems(host, layer.name)
        result = Failure(_clean(lines[0]), layer.status)
        result.text = "\n".join(map(_clean, lines))
        case.result = [result]
    elif layer.status == "warning":
        case.system_out = "\n".join(map(_clean, _problems(host, layer.name)))
    return case


def _problems(host: HostAudit, layer: str) -> list[str]:
    states = [
        f"{deviation.what}: {deviation.have} → {deviation.want} ({deviation.why})"
        for deviation in host.deviations
        if deviation.layer == layer
    ]
    known = [
        f"{finding.rule}: {finding.evidence[0]}. {finding.cure}" for finding in host.findings if finding.layer == layer
    ]
    return [*states, *known] or ["no reason recorded"]


def _clean(text: str) -> str:
    return printable(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
