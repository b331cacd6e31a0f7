"""Writer of the page ``docs/performance.md`` and its charts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.cases.case import Case
from benchmarks.figures.record import CaseRecord
from benchmarks.page.charts import chart
from benchmarks.page.document import FOLDER, PAGE, plot_of, render, replaced
from benchmarks.peers.venvs import PLOTS, environment
from hostwright.common.errors import LabError

DRAW = Path(__file__).with_name("draw.py")  #: path of the drawing program, which runs in an environment with Matplotlib


def write(cases: Sequence[Case], records: Mapping[str, CaseRecord]) -> None:
    """Write the charts and the generated part of ``docs/performance.md`` from ``records``."""
    PAGE.write_text(replaced(PAGE.read_text("utf-8"), render(cases, records)), "utf-8")
    charts = [
        {"file": plot_of(case.NAME).name, **chart(case, records[case.NAME])}
        for case in cases
        if case.NAME in records and case.PLOTTED and records[case.NAME].samples
    ]
    FOLDER.mkdir(exist_ok=True)
    words = [str(environment(PLOTS) / "python"), str(DRAW), str(FOLDER)]
    done = subprocess.run(words, input=json.dumps(charts), text=True, capture_output=True, check=False)
    if done.returncode:
        raise LabError(f"the pictures cannot be drawn: {done.stderr[-1500:]}")
