"""List of all cases of the benchmark, in the order of the page ``docs/performance.md``."""

from __future__ import annotations

from benchmarks.cases import (
    clientfiles,
    copying,
    history,
    hung,
    latency,
    listing,
    offline,
    plan,
    provision,
    pytorch,
    rebuild,
    startup,
    thousand,
    verify,
)
from benchmarks.cases.case import Case

CASES: tuple[Case, ...] = (
    plan, verify, rebuild, latency, thousand, provision, pytorch, copying, offline, listing, hung, clientfiles, startup,
    history,
)  # fmt: skip


def named(names: str) -> tuple[Case, ...]:
    """Return the cases with these comma-separated ``names``, by default all. Raises ``ValueError`` for an unknown
    one.
    """
    by_name = {case.NAME: case for case in CASES}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in wanted if name not in by_name]:
        raise ValueError(f"there is no case {', '.join(unknown)}; there are {', '.join(by_name)}")
    return tuple(by_name[name] for name in wanted) if wanted else CASES
