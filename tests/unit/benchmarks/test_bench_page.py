"""``docs/performance.md`` is what its figures say."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.cases import plan
from benchmarks.cases.all import CASES
from benchmarks.figures import record as recorded
from benchmarks.figures.record import CaseRecord, Conditions
from benchmarks.figures.sample import Sample
from benchmarks.figures.statistics import Figures
from benchmarks.page import paper
from benchmarks.page.document import FIGURES, FOLDER, PAGE, digest, plot_of, render, replaced, warned

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
    assert "| 24 hosts: wall of the plan / of the probe program alone | ≤ 1.15× | 1.05× | **reached** |" in text
    samples = (replace(one, wall_s=9.0) if one.contender == plan.PLAN else one for one in RECORD.samples)
    slower = replace(RECORD, samples=tuple(samples))
    assert "| ≤ 1.15× | 4.50× | **not reached** |" in render((plan,), {"plan": slower})


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


def test_other_samples_have_another_digest() -> None:
    assert digest(RECORD) != digest(replace(RECORD, samples=RECORD.samples[1:]))


def test_ten_thousand_hosts_are_the_figures_of_a_thousand_carried_on() -> None:
    each = {1: (1.0, 80), 100: (2.0, 90), 1000: (20.0, 180)}
    found = tuple(
        replace(sample(verb, size, 0, 9.0), cpu_s=cpu_s, rss_bytes=megabytes * 10**6)
        for verb in (plan.PLAN, plan.AUDIT)
        for size, (cpu_s, megabytes) in each.items()
    )
    text = "\n".join(paper.section(Figures(found)))
    assert "| processor time of `hostwright plan` | 20 ms | 200 s on one core |" in text
    assert "| memory of `hostwright audit` | 100 kB | 1 080 MB |" in text
    assert not [*paper.section(Figures(found[:2]))]
