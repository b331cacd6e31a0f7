"""Whatever a host answers to all probes of the standard roles: a plan, an audit and its reports, and no error."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hostwright.audit.auditing import fleet_audit
from hostwright.audit.judging.audited import audit_probes
from hostwright.audit.judging.judging import judge
from hostwright.audit.reports.diagnosis import show_diagnosis
from hostwright.audit.reports.document import read_json, render_json
from hostwright.audit.reports.junit import render_junit
from hostwright.audit.reports.prometheus import render_prometheus
from hostwright.audit.reports.spreadsheet import render_csv
from hostwright.audit.reports.table import show_audit
from hostwright.cli import console
from hostwright.plan.model import Answer, Facts, Plan
from hostwright.plan.planning import at_work, disturbing, plan_host, removal_of
from hostwright.plan.probing.questions import passes_of
from hostwright.plan.targets import TargetHost
from hostwright.standard.roles.driver.nvsmi.report import read_report
from tests.unit.fuzz.lies import answers, clean, pieces
from tests.unit.support.standard import targets
from tests.unit.support.work import calls

A_FEW = max(1, settings().max_examples // 5)  #: of what takes a tenth of a second
AT = datetime(2026, 11, 22, 21, tzinfo=UTC)
TAGS = ("gpu", "pci", "pci_bus_id", "uuid", "ecc_errors", "volatile", "processes", "process_info", "pid",
"process_name", "total",
        "fb_memory_usage", "temperature", "gpu_temp", "used_memory", "remapped_rows", "attached_gpus",
        "driver_version")  # fmt: skip
trees = st.recursive(
    pieces,
    lambda inner: st.tuples(st.sampled_from(TAGS), st.lists(inner,
    max_size=4)).map(lambda t: f"<{t[0]}>{''.join(t[1])}</{t[0]}>"),
    max_leaves=20,
)  # fmt: skip
reports = st.tuples(clean, st.lists(trees, max_size=6), clean).map(
    lambda t: f"{t[0]}\n<nvidia_smi_log>{''.join(t[1])}</nvidia_smi_log>\n{t[2]}"
)


@pytest.fixture(scope="module")
def target() -> TargetHost:
    return next(iter(targets()))


@settings(max_examples=A_FEW, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(answers, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_facts_are_a_plan(target: TargetHost, some: list[Answer], chance: random.Random) -> None:
    for desired in (target.desired, removal_of(target.desired)):
        facts = Facts({probe: chance.choice(some) for probe in desired.probes()})
        whole = plan_host(desired, facts, AT)
        assert Plan.from_json(json.loads(json.dumps(whole.plan.to_json(), allow_nan=False))) == whole.plan
        at_work(desired, disturbing(desired, facts), facts, reboots=True)


@settings(max_examples=A_FEW, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(answers, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_facts_are_an_audit_that_every_report_holds(
    target: TargetHost, some: list[Answer], chance: random.Random
) -> None:
    facts = Facts({probe: chance.choice(some) for probe in audit_probes(target)})
    audit = fleet_audit([judge(target, facts, AT)] * 3, inventory="x", began=AT)
    assert read_json(render_json(audit)) == audit
    json.loads(render_json(audit), parse_constant=pytest.fail)
    for text in (render_junit(audit), render_prometheus(audit), render_csv(audit)):
        assert "\x1b" not in text
        text.encode()
    screen = console.make_console()
    with screen.capture() as shown:
        screen.print(show_audit(audit, {}, details=True), *show_diagnosis(audit.hosts, {}))
    assert all(char.isprintable() or char in "\n\t" for char in shown.get())


@settings(max_examples=A_FEW, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(answers, st.randoms(use_true_random=False))
def test_what_a_pass_prints_is_answers_of_its_probes_or_none(
    target: TargetHost, answer: Answer, chance: random.Random
) -> None:
    for asked in passes_of(tuple(audit_probes(target))):
        words = [chance.choice([*asked.words, "/", "", "0", "'/a' -> '/b'", "OK", "old"]) for _ in range(12)]
        for text in (answer.text, "\n".join(words), "".join(f"{word}: OK\n" for word in words)):
            told = asked.answers(replace(answer, text=text))
            assert told.keys() <= asked.members.keys()
            assert all(isinstance(one, Answer) for one in told.values())


@given(reports | clean, clean)
def test_a_report_of_cards_is_one_or_none(xml: str, links: str) -> None:
    def read() -> None:
        try:
            report = read_report(xml, links)
        except ValueError:
            return
        assert all(gpu.memory_bytes is None or 0 <= gpu.memory_bytes <= 2**46 for gpu in report.gpus)

    assert calls(read) <= 5000 + 40 * (len(xml) + len(links))
