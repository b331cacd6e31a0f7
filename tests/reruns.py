"""Which tests may fail once: those that start hosts, processes or threads, whose pauses no test controls.

pytest-rerunfailures runs such a test a second time. The last line of a run names each test that needed it: it is a bug
of the test or of the program, most often a clock or a race. All other tests run once.
"""

from __future__ import annotations

import sys
from functools import cache

import pytest

STARTERS = frozenset({"concurrent.futures", "multiprocessing", "subprocess", "threading"})


def may_fail_once(item: pytest.Item) -> None:
    """Mark a test that may run a second time."""
    item.add_marker(pytest.mark.flaky(reruns=1))


@cache
def starts(module: str) -> bool:
    """Whether a module of the tests imports what starts processes or threads, itself or by another one of the tests.

    >>> starts("tests.programs")
    True
    """
    values = vars(sys.modules[module]).values()
    names = {getattr(value, "__module__", None) or getattr(value, "__name__", None) for value in values} - {module}
    ours = [name for name in names if isinstance(name, str) and name.startswith("tests.") and name in sys.modules]
    return not names.isdisjoint(STARTERS) or any(map(starts, ours))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the last line, if a test ran a second time."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    again = sorted({report.nodeid for report in reporter.stats.get("rerun", ())}) if reporter else []
    if again:
        print(f"RUN AGAIN, failed once: {', '.join(again)}", flush=True)
