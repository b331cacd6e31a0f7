"""Resources that one controller needs for 10,000 hosts, extrapolated from figures of 1,000 hosts."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cases.ours import AUDIT, PLAN
from benchmarks.figures.goals import number
from benchmarks.figures.statistics import Figures, NotMeasured
from benchmarks.page import tables
from hostwright.apply.rollout.limits import FILES_KEPT, FILES_PER_HOST, MAX_PARALLEL

HOSTS = 10_000
TEXT = """\
No run of 10,000 hosts was made. The table carries on the processor time and the memory of 1,000 hosts by what each
host added between 100 and 1,000. The bytes were counted on lab hosts, those of the history and of the page for 1,000
hosts."""
BINDS = """\
* Processor time binds first, since a Python process uses one core. Two machines with half of the inventory each, or
  [workers](operators/cluster.md) for a provision, divide it.
* The journal of a first provision is next: it wants gigabytes of disk, and `runs.show` reads all of it.
* A browser opens a page of 30 MB slowly: `--hosts @rack3` makes smaller ones.
* Memory fits most machines, and the open files are below the usual limit of 1,024."""
#: description of a file that Hostwright writes → number of bytes per host
WRITTEN = {
    "journal of a first provision, with the facts before and after it": 466_000,
    "facts that an audit stores, in place of the last ones": 76_000,
    "history of a year of daily audits, hosts with eight cards": 18_000,
    "page of `audit --html`": 3_100,
}


def rows(thousand: Figures) -> Iterator[list[str]]:
    """Yield table rows: quantity, value per host, and value for 10,000 hosts."""
    for verb in (PLAN, AUDIT):
        each_s, whole_s = _carried_on(thousand, verb, "cpu_s")
        yield [f"processor time of `{verb}`", f"{number(1000 * each_s)} ms", f"{number(whole_s)} s on one core"]
        each, whole = _carried_on(thousand, verb, "rss_bytes")
        yield [f"memory of `{verb}`", f"{number(each / 1e3)} kB", f"{number(whole / 1e6)} MB"]
    files = MAX_PARALLEL * FILES_PER_HOST + FILES_KEPT
    yield ["connections, each with its thread", f"{FILES_PER_HOST} files", f"{MAX_PARALLEL} at once, {files} files"]
    for what, size in WRITTEN.items():
        yield [what, f"{number(size / 1e3)} kB", f"{number(size * HOSTS / 1e6)} MB"]


def _carried_on(figures: Figures, verb: str, what: str) -> tuple[float, float]:
    each = figures.per_added(verb, 100, 1000, what)
    return each, figures.median(verb, 1000, what) + (HOSTS - 1000) * each


def section(thousand: Figures) -> Iterator[str]:
    """Yield the paragraphs about 10,000 hosts; none without figures of 1,000 hosts."""
    try:
        table = tables.markdown(["what", "each host", "10,000 hosts"], rows(thousand))
    except NotMeasured:
        return
    yield "## 10,000 hosts, on paper"
    yield TEXT
    yield table
    yield BINDS
