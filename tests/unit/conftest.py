"""How properties are searched: as long as it takes. A machine under load is slow, and that is nobody's failure. And
where jobs work: never in this machine's own directories. And what holds for every change that any unit test plans,
for every document that any unit test prints, and for every command that any unit test prints.
"""

import gc
import io
import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from hostwright.cli.console import Adviser
from hostwright.cli.views import shared
from hostwright.common.garbage import collect_seldom
from hostwright.plan import model
from hostwright.plan.host import jobs
from tests import reruns
from tests.unit.support.commands import check, commands_in


def pytest_configure(config: pytest.Config) -> None:
    """Name what was run a second time; and look for garbage as seldom as the command does: it is 5 % of the time."""
    collect_seldom()
    if not config.pluginmanager.is_registered(reruns):
        config.pluginmanager.register(reruns)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let tests run a second time that start processes or threads."""
    if isinstance(item, pytest.Function) and reruns.starts(item.module.__name__):
        reruns.may_fail_once(item)


def pytest_collection_finish() -> None:
    """Keep 13,000 tests out of every search for garbage."""
    gc.freeze()


FUZZ = os.environ.get("HOSTWRIGHT_FUZZ", "")  #: how many examples of each property `make fuzz` tries
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", settings.get_profile("patient"), max_examples=int(FUZZ or 1), print_blob=True)
settings.load_profile("fuzz" if FUZZ else "patient")


@pytest.fixture(autouse=True, scope="session")
def work_dirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory below which jobs get their own."""
    place = tmp_path_factory.mktemp("work") / "hostwright" / "work"
    jobs.WORK_DIRS = (str(place),)  # type: ignore[assignment]
    return place


def _says_something(change: model.Change) -> None:
    """No plan of our code in any unit test may show a change with the same text before and after."""
    _checked(change)
    maker = sys._getframe(2).f_globals["__name__"]  # of ``__init__``; tests make changes of any text
    ours = maker.startswith("hostwright.") and maker != model.__name__
    assert not ours or change.have != change.want, (
        f"a change that says nothing: {change.what}: {change.have} → {change.want}"
    )


_checked = model.Change.__post_init__
model.Change.__post_init__ = _says_something  # type: ignore[method-assign]


def _print_of_its_schema(kind: str, document: Mapping[str, Any]) -> None:
    """No verb may print a document in any unit test that is not of its published schema."""
    from tests.unit.support import schemas

    with redirect_stdout(io.StringIO()) as out:
        _printed(kind, document)
    print(out.getvalue(), end="")
    schemas.check(json.loads(out.getvalue()))


_printed = shared.print_document
shared.print_document = _print_of_its_schema


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Where Hostwright keeps records on this machine, for all tests that say nothing about it."""
    os.environ.setdefault("HOSTWRIGHT_STATE", str(tmp_path_factory.mktemp("state")))


def _works_as_printed(self: Adviser, shown: Any) -> Any:
    """Whatever command any unit test sees on a console of ours, the real program takes."""
    whole = _completed(self, shown)
    for command in commands_in(whole if isinstance(whole, str) else getattr(whole, "plain", "")):
        check(command)
    return whole


_completed = Adviser._complete
Adviser._complete = _works_as_printed  # type: ignore[method-assign]
