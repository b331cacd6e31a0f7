"""The report of rebuilds: its numbers, its JSON, its table."""

from __future__ import annotations

import io
import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hostwright.cli.views.rebuilding.times import times_table
from hostwright.rebuild.rebuild import TARGET_S, Rebuild
from hostwright.rebuild.report import FEW, document, summarise, times
from tests.unit.support.audits import HOSTILE
from tests.unit.support.rebuilds import rebuild

FLEET = (
    rebuild("repair", name="gpu01", phases={"diagnose": 2.0, "provision": 40.0}),
    rebuild("repair", name="gpu02", phases={"diagnose": 4.0, "provision": 60.0}),
    rebuild("power cycle", "repair", name="gpu03", phases={"diagnose": 3.0, "power": 30.0, "provision": 700.0}),
    rebuild(
        "reinstall", name="gpu04", outcome="failed", sentence="the install never ended", phases={"install": 9000.0}
    ),
    rebuild("hand over", name="gpu05", outcome="handed over", sentence="7 of its 8 GPUs are on the PCI bus"),
    rebuild("hand over", name="gpu06", outcome="handed over", sentence="7 of its 8 GPUs are on the PCI bus"),
    rebuild("nothing", name="gpu07", outcome="as desired"),
)


def shown(records: tuple[Rebuild, ...]) -> str:
    out = io.StringIO()
    Console(width=140, file=out).print(times_table(records))
    return out.getvalue()


def test_phases_ways_and_all_are_summed_up():
    summary = summarise(FLEET)
    assert [(timed.name, timed.number, timed.median_s, timed.p95_s, timed.slowest) for timed in summary.phases] == [
        ("diagnose", 3, 3.0, 4.0, "gpu02"), ("power", 1, 30.0, 30.0, "gpu03"), ("provision", 3, 60.0, 700.0, "gpu03"),
    ]  # fmt: skip
    assert [(timed.name, timed.number, timed.within) for timed in summary.ways] == [
        ("power cycle + repair", 1, 0),
        ("repair", 2, 2),
    ]
    assert summary.total is not None
    assert (summary.total.number, summary.total.median_s, summary.total.longest_s, summary.total.within) == (
        3,
        64.0,
        733.0,
        2,
    )
    assert summary.slow == (("power cycle + repair", ("gpu03",)),)
    assert dict(summary.outcomes) == {"rebuilt": 3, "as desired": 1, "failed": 1, "handed over": 2}


def test_the_last_of_each_host_counts_whatever_the_order():
    again = rebuild("relayer", name="gpu04", days_ago=0.5)
    before = rebuild("repair", name="gpu04", outcome="failed", days_ago=3)
    last = {one.host: one for one in summarise((again, *FLEET, before)).last}
    assert last["gpu04"] == again
    assert list(last) == sorted(last)


def test_p95_of_few_values_is_the_slowest():
    few = [(float(number), f"gpu{number}") for number in range(FEW - 1)]
    assert times("all", few).p95_s == FEW - 2
    many = [(float(number), f"gpu{number}") for number in range(101)]
    assert times("all", many).p95_s == pytest.approx(95.0)
    assert times("all", many).median_s == 50.0


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=60))
def test_the_numbers_lie_in_their_order(values: list[float]):
    timed = times("all", [(value, "gpu") for value in values])
    assert min(values) <= timed.median_s <= timed.longest_s == max(values)
    assert timed.median_s == statistics.median(values)
    assert timed.p95_s <= timed.longest_s + 1e-9
    assert timed.within == sum(value <= TARGET_S for value in values)


def test_the_document_is_json_and_says_the_method():
    report = json.loads(json.dumps(document((*FLEET, rebuild("repair", name=HOSTILE, sentence=HOSTILE)))))
    assert report["target_s"] == 600
    assert "quantiles" in report["method"]
    assert report["slow"] == {"power cycle + repair": ["gpu03"]}
    assert [last["host"] for last in report["last"]][-7:] == [f"gpu0{number}" for number in range(1, 8)]
    assert report["last"][-1]["at"] == "2026-11-20T10:00:00+00:00"


def test_the_table_folds_hosts_and_says_what_is_slow():
    text = shown(FLEET)
    assert "longer than 10 min: gpu03 (power cycle + repair)" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "provision 3 1 min 00 s 11 min 40 s 11 min 40 s gpu03" in lines
    assert "all 3 1 min 04 s 12 min 13 s 12 min 13 s 2 of 3 gpu03" in lines
    assert any(line.startswith("gpu[05-06]") and "7 of its 8 GPUs" in line for line in text.splitlines())
    assert "the install never ended" in text


def test_nothing_recorded_is_said():
    assert "no rebuild is recorded" in shown(())
    assert document(())["total"] is None


def test_what_failed_is_not_timed():
    summary = summarise(record for record in FLEET if record.outcome == "failed")
    assert summary.total is None and summary.phases == ()
    assert "the install never ended" in shown(tuple(record for record in FLEET if record.outcome == "failed"))


def test_a_lying_host_does_not_reach_the_terminal():
    text = shown((rebuild("repair", name="gpu01", outcome="failed", sentence=HOSTILE),))
    assert "owned" in text and "\x1b" not in text and "\u202e" not in text
