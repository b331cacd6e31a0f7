"""Generator of the variable part of ``docs/performance.md``. Equal figures give equal text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.cases import thousand
from benchmarks.cases.case import Case, Wanted, estimate_s
from benchmarks.figures.goals import number
from benchmarks.figures.record import CaseRecord, Conditions
from benchmarks.measuring.command import PROJECT
from benchmarks.page import paper, tables

FOLDER = PROJECT / "docs/performance"
FIGURES = FOLDER / "figures.json"
PAGE = PROJECT / "docs/performance.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def plot_of(name: str) -> Path:
    """Return the path of the chart for the case ``name``."""
    return FOLDER / f"{name}.svg"


def digest(record: CaseRecord) -> str:
    """Return a digest of a case's samples. A chart with another digest is outdated."""
    text = json.dumps([one.to_json() for one in record.samples], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def replaced(page: str, text: str) -> str:
    """Replace the generated part of ``page`` by ``text``. Raises ``ValueError`` without markers in ``page``."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def render(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> str:
    """Generate the variable part of ``docs/performance.md`` from the stored ``records``."""
    measured = [(case, records[case.NAME]) for case in cases if case.NAME in records]
    parts = [*_summary(measured), *_costs(cases, records), *_conditions(measured)]
    for case, record in measured:
        parts += _section(case, record)
    if thousand.NAME in records:
        parts += paper.section(records[thousand.NAME].figures)
    return "".join(f"{part}\n\n" for part in ["", *parts])[1:]


def _summary(measured: Sequence[tuple[Case, CaseRecord]]) -> Iterator[str]:
    every = [(case, one) for case, record in measured for one in tables.verdicts(case, record.figures)]
    reached = sum(one.verdict == "reached" for _, one in every)
    yield f"{reached} of {len(every)} goals are reached."
    if warning := warned(measured):
        yield f"> {warning}"
    rows = [[case.TITLE, *tables.goal_cells(one)] for case, one in every]
    yield tables.markdown(["case", *tables.GOAL_COLUMNS], rows)


def warned(measured: Sequence[tuple[Case, CaseRecord]]) -> str:
    """Return a warning if the machine was loaded before a measurement; else empty."""
    loaded = [case.NAME for case, record in measured if not record.conditions.quiet]
    if not loaded:
        return ""
    most = max(record.conditions.load_before[0] for _, record in measured)
    return (
        f"**Not figures to quote.** The machine was loaded with other work (up to {most:.1f} before a run began), "
        f"and so walls, and verdicts on them, only show that the benchmark works: {', '.join(loaded)}."
    )


def _costs(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> Iterator[str]:
    yield "## Cost of a run"
    rows = [
        [
            case.NAME,
            f"{estimate_s(case, Wanted()) / 60:.1f}",
            _minutes(records[case.NAME]) if case.NAME in records else "–",
        ]
        for case in cases
    ]
    yield tables.markdown(["case", "estimate, minutes", "its last run, minutes"], rows)


def _minutes(record: CaseRecord) -> str:
    return f"{record.took_s / 60:.1f}"


def _conditions(measured: Sequence[tuple[Case, CaseRecord]]) -> Iterator[str]:
    by_conditions: dict[str, tuple[Conditions, list[str]]] = {}
    for case, record in measured:
        key = json.dumps(record.to_json()["conditions"], sort_keys=True)
        by_conditions.setdefault(key, (record.conditions, []))[1].append(case.NAME)
    yield "## Machine and versions"
    for conditions, names in by_conditions.values():
        load = ", ".join(f"{one:.2f}" for one in conditions.load_before)
        cases = ", ".join(names) if len(names) < len(measured) else "All cases"
        yield "\n".join(
            [
                f"{cases}: {conditions.at}, commit {conditions.commit}, load before {load}.",
                "",
                *tables.lines(conditions.machine.items()),
                *tables.lines([("versions", _joined(conditions.versions))]),
            ]
        )


def _joined(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _section(case: Case, record: CaseRecord) -> Iterator[str]:
    yield f"## {case.TITLE}"
    yield case.ABOUT
    yield tables.goals(tables.verdicts(case, record.figures))
    if case.PLOTTED and record.samples:
        yield f"![{case.TITLE}: wall](performance/{plot_of(case.NAME).name})"
    yield tables.samples(case.TABLE, record.figures)
    facts = [("rounds", f"{record.rounds}, alternated; {_minutes(record)} min in all"), *record.facts.items()]
    unit = record.calibration_s
    facts.append(("calibration", f"{number(unit)} s of processor time" if unit else "not measured"))
    facts += [("not measured", f"{name}: {why}") for name, why in record.failed.items()]
    facts += [("cut short", record.cut)] if record.cut else []
    yield "\n".join(tables.lines(facts))
