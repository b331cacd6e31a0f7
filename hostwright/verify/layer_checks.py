"""The pytest plugin that runs the checks of layers on a site's hosts.

The plugin provides fixtures, and writes one JSON line per check. The plugin receives hosts and sudo passwords through a
pipe, so that no argument, environment or file contains a password.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

import pytest
from _pytest.config import ConftestImportFailure
from _pytest.outcomes import Skipped
from testinfra.backend.base import CommandResult
from testinfra.host import Host as TestinfraHost

from hostwright.common.errors import HostError, described
from hostwright.common.input.vault import Vault
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.common.text import count
from hostwright.common.untrusted import Pattern
from hostwright.plan.facts.expected import GPUS, read_expected_gpus
from hostwright.plan.roles.role import place_of
from hostwright.plan.roles.site import STANDARD, Site
from hostwright.plan.targets import Roster, TargetHost
from hostwright.stack.stack import Stack
from hostwright.transport import Output, import_all
from hostwright.transport.root.rootshell import RootShell
from hostwright.verify.backend import BoundedRunner, OnceRunner, program_runner, testinfra_host
from hostwright.verify.units import MARKS, PlacedCheck, Unit, lanes_for, units_of
from hostwright.verify.worker import UNREADABLE, Order, Task, run_in_lanes, serve

STANDARD_CHECKS = (STANDARD / "checks").resolve()
OUTPUT_CHARACTERS = 256 * 1024  #: number of characters of the output of a check's commands to search for known failures
#: exceptions of a check that was not made: the host did not respond, or lacks a requirement
UNCHECKED = (HostError, pytest.skip.Exception)


class NoGpu(Skipped):
    """Raised by a check that needs a GPU, on a host without a GPU."""


_OBJECT = Pattern(r"<[^<>\n]{1,300} at 0x[0-9a-f]{1,16}>")  #: pattern of the default text for a Python object


class CheckOutputs:
    """The output of the commands of the current check and of each fixture."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.of_fixtures: dict[str, list[str]] = {}

    def hear(self, output: Output) -> None:
        """Store the standard error of a command and, if the command failed, its standard output."""
        text = output.stderr + (output.stdout if output.status else b"")
        if text:
            self.texts.append(text.decode("utf-8", "replace"))

    def by(self, item: pytest.Item) -> str:
        """Return the stored output of the commands of the check ``item``; of a long output, only the start and the
        end.
        """
        names: list[str] = getattr(item, "fixturenames", [])
        texts = [text for name in names for text in self.of_fixtures.get(name, ())] + self.texts
        text = "\n".join(dict.fromkeys(texts))
        half = OUTPUT_CHARACTERS // 2
        return text if len(text) <= OUTPUT_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


@dataclass(frozen=True)
class CheckedHost:
    """The host that this process checks, with the sudo password."""

    target: TargetHost
    password: Secret | None


HOST = pytest.StashKey[CheckedHost]()
INVENTORY = pytest.StashKey[str]()  #: path of the inventory as written in records
ANSWERS = pytest.StashKey[Path]()  #: directory with results of commands, shared by all processes of a host
OUTPUTS = pytest.StashKey[CheckOutputs]()
BROKEN = pytest.StashKey[ConftestImportFailure]()  #: error on import of the site's conftest.py
#: role and error text for each file of checks that cannot be imported
UNREAD = pytest.StashKey[list[tuple[str, str]]]()


def pytest_configure(config: pytest.Config) -> None:
    """Initialize the state of this plugin, and register the markers of checks."""
    for mark, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    config.stash[UNREAD] = []
    if broken := config.stash.get(BROKEN, None):
        sentence = f"{place_of(broken.cause, str(broken.path))}: {described(broken.cause)}"
        below = [Path(name) for name in config.args if broken.path.parent in Path(name).parents]
        config.stash[UNREAD] += [(path.stem.removeprefix("test_"), sentence) for path in below]
    config.stash[OUTPUTS] = CheckOutputs()


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """Store the output of a fixture's commands for every check that uses the fixture."""
    outputs = request.config.stash[OUTPUTS]
    before = len(outputs.texts)
    yield
    outputs.of_fixtures[fixturedef.argname] = outputs.texts[before:]


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Keep pytest running if a ``conftest.py`` is broken. Only the checks in its directory and below fail."""
    outcome: Any = yield
    if outcome.excinfo is not None and isinstance(outcome.excinfo[1], ConftestImportFailure):
        early_config.stash[BROKEN] = outcome.excinfo[1]
        outcome.force_result(None)


def pytest_exception_interact(node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
    """Record a file of checks that cannot be imported, as an error of only those hosts that have the file's role."""
    if isinstance(node, pytest.Collector) and call.excinfo is not None:
        wrapped = call.excinfo.value
        error = wrapped.__cause__ if isinstance(wrapped.__cause__, Exception) else wrapped
        node.config.stash[UNREAD].append((_role_of(node), f"{place_of(error, str(node.path))}: {described(error)}"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options by which the parent process passes site, inventory, pipe and number of hosts."""
    group = parser.getgroup("hostwright")
    group.addoption("--hw-site", help="directory of the site")
    group.addoption("--hw-inventory", action="append", help="path of the inventory; repeatable")
    group.addoption("--hw-pipe", type=int, help="descriptor of the connection to the parent process")
    group.addoption("--hw-hosts", type=int, help="number of hosts; with few hosts, the checks of each run in parallel")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Replace pytest's own loop: for each host, fork a process that runs the collected checks."""
    option = session.config.getoption
    parent = Connection(option("--hw-pipe"))
    opening = parent.recv()
    vault = Vault(lambda: map(Secret, opening["vault"]))
    site, request = Site(Path(option("--hw-site"))), Request(var=opening["var"])
    roster = Roster.load([*map(Path, option("--hw-inventory") or ())], request, site=site, vault=vault)
    session.config.stash[INVENTORY] = str(roster.path)

    def prepare(order: Order) -> Task:
        unread = [sentence for role, sentence in session.config.stash[UNREAD] if role in order["roles"]]
        if unread:
            return lambda: _tell(unread)
        # The host's own process raises this error again. Here, the error would end the checks of all hosts.
        with suppress(Exception):
            roster.targets(order["host"], order["roles"])
        return lambda: _check(session, roster, order)

    import_all()
    gc.freeze()  # This call keeps existing objects in memory that all processes share.
    serve(parent, prepare)
    return True


def _check(session: pytest.Session, roster: Roster, order: Order) -> int:
    target = roster.targets(order["host"], order["roles"])[0]
    items = [item for item in session.items if _role_of(item) in order["roles"]]
    units = units_of([_placed(item) for item in items])
    results = _Results(Path(order["results"]), items)
    session.config.stash[HOST] = CheckedHost(target, order["password"] and Secret(order["password"]))
    session.config.stash[ANSWERS] = Path(f"{order['results']}.answers")
    session.config.stash[ANSWERS].mkdir(0o700)
    session.config.pluginmanager.register(results, "hostwright-results")

    def run(taken: Iterable[Unit]) -> int:
        return _run(session, items, taken, results)

    alone = [(number,) for number in units.alone]
    lanes = lanes_for(session.config.getoption("--hw-hosts"), units)
    if lanes == 1:
        return run([*units.side_by_side, *alone])
    return run_in_lanes(units.side_by_side, lanes, run) or run(alone)


def _tell(sentences: Iterable[str]) -> int:
    print("\n".join(sentences), flush=True)
    return UNREADABLE


def _placed(item: pytest.Item) -> PlacedCheck:
    marks = frozenset(mark.name for mark in item.iter_markers() if mark.name in MARKS)
    return PlacedCheck(item.path, item.path.is_relative_to(STANDARD_CHECKS), marks)


def _run(session: pytest.Session, items: Sequence[pytest.Item], taken: Iterable[Unit], results: _Results) -> int:
    for unit in taken:
        for number, following in zip(unit, [*unit[1:], None], strict=True):
            nextitem: Any = session if following is None else items[following]
            items[number].config.hook.pytest_runtest_protocol(item=items[number], nextitem=nextitem)
    results.end(pytest.CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), "teardown"))
    return 0


class _Results:
    """Writes the result of each check when the check ends. The duration includes the check's fixtures."""

    def __init__(self, path: Path, items: Sequence[pytest.Item]):
        self._path = path
        self._items = items
        self._numbers = {item.nodeid: number for number, item in enumerate(items)}
        self._took_s = 0.0
        self._why: list[str] = []
        self._checked, self._no_gpu = True, False
        self._last: dict[str, Any] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._put(self._named(self._items[self._numbers[nodeid]]))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        outcome: Any = yield
        report = outcome.get_result()
        self._took_s += call.duration
        if not report.passed:
            self._why.append(_why(call))
            self._checked = self._checked and not (call.excinfo and call.excinfo.errisinstance(UNCHECKED))
            self._no_gpu = len(self._why) == 1 and bool(call.excinfo and call.excinfo.errisinstance(NoGpu))
        # The phase ``teardown`` is the last phase of a check, and the only one that is always reported.
        if report.when == "teardown":
            self._write(item)
            self._took_s, self._why, self._checked, self._no_gpu = 0.0, [], True, False
            item.config.stash[OUTPUTS].texts.clear()

    def end(self, call: pytest.CallInfo[None]) -> None:
        if call.excinfo is not None and self._last.get("passed"):
            self._put({**self._last, "passed": False, "why": _why(call)})

    def _write(self, item: pytest.Item) -> None:
        self._last = {
            **self._named(item),
            "sentence": inspect.getdoc(getattr(item, "function", None)) or item.name,
            "passed": not self._why,
            "duration_s": round(self._took_s, 3),
            "why": self._why[0] if self._why else "",
            "checked": self._checked,
            "no_gpu": self._no_gpu,
            "output": item.config.stash[OUTPUTS].by(item) if self._why and self._checked else "",
        }
        self._put(self._last)

    def _named(self, item: pytest.Item) -> dict[str, Any]:
        return {"number": self._numbers[item.nodeid], "role": _role_of(item), "check": item.name}

    def _put(self, row: Mapping[str, Any]) -> None:
        """Append ``row`` with a single write call, because several processes append to the file."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, json.dumps(row).encode() + b"\n")
        finally:
            os.close(file)


def _role_of(node: pytest.Item | pytest.Collector) -> str:
    return Path(str(node.path)).stem.removeprefix("test_")


def _why(call: pytest.CallInfo[None]) -> str:
    error = call.excinfo
    if error is None:
        return ""
    first, *more = (str(error.value).strip() or error.typename).splitlines()
    return "\n".join([_OBJECT.sub("…", first), *(line for line in more if not _OBJECT.search(line))])


@pytest.fixture(scope="session")
def target(pytestconfig: pytest.Config) -> TargetHost:
    """The host under test, with its stack and bound variables."""
    return pytestconfig.stash[HOST].target


@pytest.fixture(scope="session")
def no_gpu(target: TargetHost) -> Callable[[], NoReturn]:
    """A function that ends a check because it needs a GPU; the check then does not count.

    If the inventory defines GPUs for the host, the check fails.
    """

    def end() -> NoReturn:
        if number := read_expected_gpus(target.host):
            pytest.fail(f"no GPU was found; the inventory says that the host has {count(number, 'GPU')} ({GPUS})")
        raise NoGpu("no GPU in this host")

    return end


@pytest.fixture(scope="session")
def inventory(pytestconfig: pytest.Config) -> str:
    """The path of the inventory, as written in records of runs."""
    return pytestconfig.stash[INVENTORY]


@pytest.fixture(scope="session")
def shell(pytestconfig: pytest.Config) -> Iterator[RootShell]:
    """An SSH connection, shared by all checks that this process runs."""
    checked = pytestconfig.stash[HOST]
    with checked.target.connect(checked.password) as opened:
        yield opened


@pytest.fixture(scope="session")
def host(shell: RootShell, pytestconfig: pytest.Config) -> TestinfraHost:
    """The testinfra object that runs commands as the login user."""
    return testinfra_host(shell, heard=pytestconfig.stash[OUTPUTS].hear)


@pytest.fixture(scope="session")
def bounded_run(host: TestinfraHost, pytestconfig: pytest.Config) -> BoundedRunner:
    """A runner for commands that may hang. ``bounded_run("cmd -a")`` runs a command once, as the login user.

    The check fails if the command hangs.
    """
    return BoundedRunner(host, pytestconfig.stash[ANSWERS])


@pytest.fixture(scope="session")
def once(host: TestinfraHost, pytestconfig: pytest.Config) -> OnceRunner:
    """A runner for commands with constant output, once per host and as the login user: ``once("cmd %s", argument)``."""
    return OnceRunner(host, pytestconfig.stash[ANSWERS])


@pytest.fixture(scope="session")
def root_host(shell: RootShell, pytestconfig: pytest.Config) -> TestinfraHost:
    """The testinfra object that runs commands as root."""
    return testinfra_host(shell, root=True, heard=pytestconfig.stash[OUTPUTS].hear)


@pytest.fixture(scope="session")
def root_run(root_host: TestinfraHost) -> Callable[..., CommandResult]:
    """A runner for commands as root: ``root_run("cmd %s", argument)``. Arguments are quoted."""
    run: Callable[..., CommandResult] = root_host.run
    return run


@pytest.fixture(scope="session")
def root_once(root_host: TestinfraHost, pytestconfig: pytest.Config) -> OnceRunner:
    """A runner for root's commands with constant output, once per host: ``root_once("cmd %s", argument)``."""
    return OnceRunner(root_host, pytestconfig.stash[ANSWERS])


@pytest.fixture(scope="session")
def run_program(host: TestinfraHost, root_run: Callable[..., CommandResult]) -> Callable[..., CommandResult]:
    """A runner for scripts that compile or unpack programs and execute them: ``run_program(script, argument)``."""
    return program_runner(host, root_run)


@pytest.fixture(scope="session")
def stack(target: TargetHost) -> Stack:
    """The stack that the host under test should have."""
    return target.stack


@pytest.fixture(scope="module")
def variables(request: pytest.FixtureRequest, target: TargetHost) -> Any:
    """The bound variables of the role under test: in ``test_base.py``, the variables of the role ``base``."""
    return target.variables[Path(str(request.path)).stem.removeprefix("test_")]
