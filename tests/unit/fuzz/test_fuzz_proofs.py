"""Whatever a proof's program prints: measurements that every report can hold, and no error."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import StepResult
from hostwright.prove.fleetproof import FleetProof, HostProof
from hostwright.prove.host import ended_result
from hostwright.prove.job import ended
from hostwright.prove.judging import against_baseline
from hostwright.prove.model import Expected
from hostwright.prove.peers.comparing import against_peers
from hostwright.prove.reading import read
from hostwright.prove.reports.document import read_json, render_json
from hostwright.prove.reports.html import render_html
from hostwright.prove.reports.prometheus import render_prometheus
from hostwright.prove.reports.table import show_proofs
from tests.unit.fuzz.lies import clean, pieces
from tests.unit.support.proofs import proof
from tests.unit.support.work import calls

NONCE = "f00dcafe"
keys = st.sampled_from(["measure", "value", "unit", "device", "better", "error", "end", "not run"]) | pieces
values = st.recursive(
    pieces
    | st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.sampled_from(["more", "less", "cpu", "no GPU"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(pieces, inner, max_size=2),
    max_leaves=4,
)
rows = st.dictionaries(keys, values, max_size=6).map(json.dumps)
sound = st.builds(
    lambda value, device, better: json.dumps(
        {"measure": "speed", "value": value, "unit": "GB/s", "device": device, "better": better}
    ),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**17), 10**17),
    st.sampled_from(["cpu", "GPU-1 (A100)", "no GPU"]),
    st.sampled_from(["more", "less", ""]),
)
words = st.sampled_from(["status", "took", "stopped", "said", "hottest", "build"])
own = st.tuples(words, pieces, pieces).map(lambda three: f"{NONCE} {' '.join(three)}")
printed = st.lists(rows | sound | own | clean, max_size=8).map("\n".join)


@given(printed)
def test_what_is_read_is_sound(text: str) -> None:
    taken = read(text)
    for one in taken.measurements:
        assert one.device and one.name
        assert one.number is None or math.isfinite(one.number)
        assert len(one.device) <= 160 and len(one.unit) <= 24
        assert "\n" not in f"{one.device}{one.unit}{one.value}"


@given(st.lists(printed, min_size=1, max_size=5))
def test_every_report_holds_it(texts: list[str]) -> None:
    prove = proof("")
    expected = Expected("gpu01", processor="EPYC")
    hosts = []
    for number, text in enumerate(texts):
        end = ended(StepResult(0, "clock.ticks", 0, 1.0, text), NONCE)
        result = ended_result(prove, end, expected)
        assert result.outcome != "passed" or (end.status == 0 and not result.sentence)
        hosts.append(HostProof(f"gpu{number}", "plain", "2026-11-23T08:00:00+00:00", "", (result,)))
    judged = against_peers([against_baseline(host, {}, 0.1) for host in hosts])
    fleet = FleetProof("2026-11-23T08:00:00+00:00", "/inventory", "full", judged)
    assert read_json(render_json(fleet)) == fleet
    assert render_html(fleet) and render_prometheus(fleet) and show_proofs(fleet, details=True)


def test_the_work_is_in_proportion_to_the_text() -> None:
    for piece in ('{"measure": "a", "value": 1, "device": "cpu"}\n', "{" * 50 + "\n", '{"a":' * 60 + "\n", "noise\n"):
        assert calls(lambda piece=piece: read(piece * 800)) < 12 * calls(lambda piece=piece: read(piece * 100)) + 1000
