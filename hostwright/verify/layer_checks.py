"""The pytest plugin with which ``tests/layers`` runs on a user's host: fixtures in, one JSON line a check out.

It is loaded by ``hostwright.verify.verifying`` in a process of its own, one a host. The sudo password comes through a
pipe whose descriptor is named on the command line: it is in no argument, environment or file.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host as TestinfraHost

from hostwright.common.secret import Secret
from hostwright.plan.member import Member, Roster
from hostwright.plan.site import Site
from hostwright.stack.stack import Stack
from hostwright.transport.rootshell import RootShell
from hostwright.verify.eyes import testinfra_host


def pytest_addoption(parser: pytest.Parser) -> None:
    """How the parent process says which host is meant."""
    group = parser.getgroup("hostwright")
    group.addoption("--hw-host", help="inventory name of the host")
    group.addoption("--hw-site", help="directory of the site")
    group.addoption("--hw-inventory", help="path of the inventory")
    group.addoption("--hw-set", action="append", default=[], help="key=value, as on the command line")
    group.addoption("--hw-results", help="file to which one JSON line a check is appended")
    group.addoption("--hw-password-fd", type=int, default=-1, help="descriptor from which the sudo password is read")


class _Results:
    """Writes what became of each check as it ends."""

    def __init__(self, path: Path):
        self._path = path

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        report = outcome.get_result()
        if report.when != "call" and report.passed:
            return
        row = {
            "role": _role_of(item),
            "check": item.name,
            "sentence": inspect.getdoc(getattr(item, "function", None)) or item.name,
            "passed": report.passed,
            "duration_s": round(call.duration, 3),
            "why": "" if report.passed else _why(call),
        }
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    """Register the writer of results."""
    path = config.getoption("--hw-results")
    if path:
        config.pluginmanager.register(_Results(Path(path)), "hostwright-results")


def _role_of(item: pytest.Item) -> str:
    return Path(str(item.path)).stem.removeprefix("test_")


def _why(call: pytest.CallInfo[None]) -> str:
    """The sentence of a failed assertion, or of the error, without pytest's traceback."""
    error = call.excinfo
    return "" if error is None else (str(error.value).strip() or error.typename)


@pytest.fixture(scope="session")
def member(pytestconfig: pytest.Config) -> Member:
    """The host under test with its stack and bound variables."""
    settings = dict(pair.partition("=")[::2] for pair in pytestconfig.getoption("--hw-set"))
    site = Site(Path(pytestconfig.getoption("--hw-site")))
    roster = Roster.load(Path(pytestconfig.getoption("--hw-inventory")), site=site, settings=settings)
    return roster.members(pytestconfig.getoption("--hw-host"))[0]


@pytest.fixture(scope="session")
def shell(pytestconfig: pytest.Config, member: Member) -> Iterator[RootShell]:
    """One SSH connection for all checks of the host."""
    with member.connect(_given(pytestconfig.getoption("--hw-password-fd"))) as opened:
        yield opened


def _given(descriptor: int) -> Secret | None:
    """The sudo password, when one was given."""
    if descriptor < 0:
        return None
    with os.fdopen(descriptor, encoding="utf-8") as pipe:
        return Secret(pipe.read())


@pytest.fixture(scope="session")
def host(shell: RootShell) -> TestinfraHost:
    """testinfra's host, as the login user."""
    return testinfra_host(shell)


@pytest.fixture(scope="session")
def root_run(shell: RootShell) -> Callable[..., CommandResult]:
    """``root_run("cmd %s", argument)`` runs a command as root; arguments are quoted."""
    run: Callable[..., CommandResult] = testinfra_host(shell, root=True).run
    return run


@pytest.fixture(scope="session")
def stack(member: Member) -> Stack:
    """The stack that the host shall have."""
    return member.stack


@pytest.fixture(scope="module")
def variables(request: pytest.FixtureRequest, member: Member) -> Any:
    """The bound variables of the role whose checks these are: ``test_cuda.py`` gets those of ``cuda``."""
    return member.variables[Path(str(request.path)).stem.removeprefix("test_")]
