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
    found = summarise(FLEET)
    assert [(one.name, one.number, one.median_s, one.p95_s, one.slowest) for one in found.phases] == [
        ("diagnose", 3, 3.0, 4.0, "gpu02"), ("power", 1, 30.0, 30.0, "gpu03"), ("provision", 3, 60.0, 700.0, "gpu03"),
    ]  # fmt: skip
    assert [(one.name, one.number, one.within) for one in found.ways] == [
        ("power cycle + repair", 1, 0),
        ("repair", 2, 2),
    ]
    assert found.total is not None
    assert (found.total.number, found.total.median_s, found.total.longest_s, found.total.within) == (3, 64.0, 733.0, 2)
    assert found.slow == (("power cycle + repair", ("gpu03",)),)
    assert dict(found.outcomes) == {"rebuilt": 3, "as desired": 1, "failed": 1, "handed over": 2}


def test_the_last_of_each_host_counts_whatever_the_order():
    again = rebuild("relayer", name="gpu04", days_ago=0.5)
    before = rebuild("repair", name="gpu04", outcome="failed", days_ago=3)
    last = {one.host: one for one in summarise((again, *FLEET, before)).last}
    assert last["gpu04"] == again
    assert list(last) == sorted(last)


def test_with_few_values_p95_is_the_slowest_and_with_more_it_is_not():
    few = [(float(number), f"gpu{number}") for number in range(FEW - 1)]
    assert times("all", few).p95_s == FEW - 2
    many = [(float(number), f"gpu{number}") for number in range(101)]
    assert times("all", many).p95_s == pytest.approx(95.0)
    assert times("all", many).median_s == 50.0


@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=60))
def test_the_numbers_lie_in_their_order(values: list[float]):
    found = times("all", [(value, "gpu") for value in values])
    assert min(values) <= found.median_s <= found.longest_s == max(values)
    assert found.median_s == statistics.median(values)
    assert found.p95_s <= found.longest_s + 1e-9
    assert found.within == sum(value <= TARGET_S for value in values)


def test_the_document_is_json_and_says_the_method():
    found = json.loads(json.dumps(document((*FLEET, rebuild("repair", name=HOSTILE, sentence=HOSTILE)))))
    assert found["target_s"] == 600
    assert "quantiles" in found["method"]
    assert found["slow"] == {"power cycle + repair": ["gpu03"]}
    assert [one["host"] for one in found["last"]][-7:] == [f"gpu0{number}" for number in range(1, 8)]
    assert found["last"][-1]["at"] == "2026-11-20T10:00:00+00:00"


def test_the_table_folds_hosts_and_says_what_is_slow():
    text = shown(FLEET)
    assert "longer than 10 minutes: gpu03 (power cycle + repair)" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["provision", "3", "60.0", "s", "700.0", "s", "700.0", "s", "gpu03"] in lines
    assert ["all", "3", "64.0", "s", "733.0", "s", "733.0", "s", "2", "of", "3", "gpu03"] in lines
    assert any(line.startswith("gpu[05-06]") and "7 of its 8 GPUs" in line for line in text.splitlines())
    assert "the install never ended" in text


def test_nothing_recorded_is_said():
    assert "no rebuild is recorded" in shown(())
    assert document(())["total"] is None


def test_what_failed_is_not_timed():
    found = summarise(one for one in FLEET if one.outcome == "failed")
    assert found.total is None and found.phases == ()
    assert "the install never ended" in shown(tuple(one for one in FLEET if one.outcome == "failed"))


def test_a_lying_host_does_not_reach_the_terminal():
    text = shown((rebuild("repair", name="gpu01", outcome="failed", sentence=HOSTILE),))
    assert "owned" in text and "\x1b" not in text and "\u202e" not in text
