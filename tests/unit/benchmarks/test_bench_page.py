"""``docs/performance.md`` is what its figures say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.cases import plan
from benchmarks.cases.all import CASES
from benchmarks.cases.case import Table
from benchmarks.figures import record as recorded
from benchmarks.figures.record import CaseRecord, Conditions
from benchmarks.figures.sample import Sample
from benchmarks.figures.statistics import Figures
from benchmarks.page import tables
from benchmarks.page.charts import chart
from benchmarks.page.document import BEGIN, END, FIGURES, FOLDER, PAGE, digest, plot_of, render, replaced, warned

QUIET = Conditions(
    "2026-11-24T12:00:00+00:00", "0123456789ab", {"cores": "2"}, {"pyinfra": "3.10.0"}, (0.1, 0.2, 0.3), True
)


def sample(contender: str, size: int, round_: int, wall_s: float, variant: str = "") -> Sample:
    return Sample(
        contender, size, variant, round_, wall_s, wall_s / 2, 50_000_000, 3, sent_bytes=12_000, extra={"copies": 4}
    )


RECORD = CaseRecord(
    QUIET,
    3,
    130.0,
    (
        *(sample(plan.PLAN, 24, number, wall_s) for number, wall_s in enumerate((2.2, 2.0, 2.1))),
        *(sample(plan.PROBES, 24, number, wall_s) for number, wall_s in enumerate((2.0, 2.0, 2.0))),
    ),
    {"probe program": "1 exec channel(s), 56 kB of program"},
)


def test_the_page_and_its_figures_agree() -> None:
    records = recorded.read(FIGURES)
    assert records, "the page has no figures"
    text = PAGE.read_text("utf-8")
    assert replaced(text, render(CASES, records)) == text, "run `python -m benchmarks page`"


def test_every_picture_is_of_the_figures_that_are_kept() -> None:
    records = recorded.read(FIGURES)
    drawn = {case.NAME for case in CASES if case.NAME in records and case.PLOTTED and records[case.NAME].samples}
    assert {path.stem for path in FOLDER.glob("*.svg")} == drawn
    for name in drawn:
        assert digest(records[name]) in plot_of(name).read_text("utf-8"), "run `python -m benchmarks page`"


def test_pictures_name_no_other_host_than_those_of_formats() -> None:
    for picture in FOLDER.glob("*.svg"):
        text = picture.read_text("utf-8")
        assert 'href="http' not in text and "<script" not in text and "url(http" not in text


def test_a_verdict_on_the_page_is_computed() -> None:
    text = render((plan,), {"plan": RECORD})
    assert "| 24 hosts: wall of the plan / of the probe program alone | ≤ 1.10× | 1.05× | **reached** |" in text
    samples = (replace(one, wall_s=9.0) if one.contender == plan.PLAN else one for one in RECORD.samples)
    slower = replace(RECORD, samples=tuple(samples))
    assert "| ≤ 1.10× | 4.50× | **not reached** |" in render((plan,), {"plan": slower})


def test_what_was_not_measured_is_said() -> None:
    text = render((plan,), {"plan": replace(RECORD, failed={"pyinfra, 24": "no results"}, cut="after 1 of 3 rounds")})
    assert "* not measured: pyinfra, 24: no results" in text
    assert "* cut short: after 1 of 3 rounds" in text
    assert "| ≥ 10× | – | **not measured** |" in text


def test_a_loaded_machine_is_said_before_any_figure() -> None:
    loaded = replace(RECORD, conditions=replace(QUIET, quiet=False, load_before=(12.5, 9.0, 8.0)))
    assert warned([(plan, RECORD)]) == ""
    assert "up to 12.5 before a run began" in warned([(plan, loaded)])
    assert render((plan,), {"plan": loaded}).index("Not figures to quote") < render((plan,), {"plan": loaded}).index(
        "| ---"
    )


def test_machine_and_versions_stand_on_the_page_once() -> None:
    text = render((plan,), {"plan": RECORD})
    assert text.count("versions: pyinfra 3.10.0") == 1
    assert "plan: 2026-11-24T12:00:00+00:00, commit 0123456789ab, load before 0.10, 0.20, 0.30." in text


def test_a_row_has_the_median_and_what_it_lies_between() -> None:
    table = tables.samples(Table(), RECORD.figures)
    assert "| 24 | hostwright plan | 2.10 (2–2.20) | 1.05 (1–1.10) | 50 | 3 | 12 | – | 3 |" in table


def test_conditions_and_further_values_have_columns_where_there_are_any() -> None:
    figures = Figures((sample("a", 1, 0, 1.0, "80 ms"), sample("a", 1, 0, 0.5)))
    table = tables.samples(Table(memory=False, traffic=False, extra={"copies": "copies sent"}), figures)
    heads = "hosts | condition | contender | wall, s | controller CPU, s | copies sent | rounds"
    assert table.splitlines()[0] == f"| {heads} |"
    assert table.splitlines()[2:] == ["| 1 | – | a | 0.500 | 0.250 | 4 | 1 |", "| 1 | 80 ms | a | 1 | 0.500 | 4 | 1 |"]


def test_a_bar_in_a_cell_is_escaped() -> None:
    assert tables.markdown(["a"], [["b | c"]]).splitlines()[-1] == "| b \\| c |"


def test_a_chart_has_a_group_for_each_size() -> None:
    drawn = chart(plan, RECORD)
    assert [group["name"] for group in drawn["groups"]] == ["24 hosts"]
    assert drawn["groups"][0]["bars"][0] == {"contender": plan.PLAN, "median": 2.1, "least": 2.0, "most": 2.2}
    assert drawn["digest"] == digest(RECORD)


def test_other_samples_have_another_digest() -> None:
    assert digest(RECORD) != digest(replace(RECORD, samples=RECORD.samples[1:]))


def test_the_generated_part_is_replaced_and_the_rest_stays() -> None:
    page = f"# Title\n\n{BEGIN}\nold\n{END}\nrest\n"
    assert replaced(page, "new\n") == f"# Title\n\n{BEGIN}\nnew\n{END}\nrest\n"
    with pytest.raises(ValueError, match="has no"):
        replaced("# Title\n", "new\n")
