"""Tests of the checks of layers: their files and results. No host is contacted: no check here runs a command."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hostwright.common.errors import HostError
from hostwright.common.input.ownership import NotTrusted
from hostwright.common.request import Request
from hostwright.common.secret import Secret
from hostwright.plan.model import Plan
from hostwright.plan.planning import HostPlan
from hostwright.plan.roles.role import discover
from hostwright.plan.roles.site import STANDARD, Site
from hostwright.plan.targets import Roster, TargetHost
from hostwright.verify import checking
from hostwright.verify.checking import Checks, check_layers, files_of
from hostwright.verify.verdict import Verdict

ROLE = """\
from collections.abc import Iterator
from dataclasses import dataclass

from hostwright.plan.model import Resource
from hostwright.plan.roles.role import RoleContext, role


@dataclass(frozen=True, slots=True)
class Motd:
    text: str = "ours"


@role()
def {name}(v: Motd, ctx: RoleContext) -> Iterator[Resource]:
    yield from ()
"""
CHECKS = '''\
def test_the_text_is_ours(variables):
    """Who logs in reads our text."""
    assert variables.text == "ours", f"it is {variables.text}"


def test_the_stack_is_known(target):
    """The stack has a name."""
    assert target.stack.name
'''


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with a role of its own, checks for it, and one host."""
    for name, text in {
        "inventory/hosts.yml": "all: {hosts: {gpu01: {hostwright_roles: [motd]}}}\n",
        "tasks.py": "",
        "roles/motd/__init__.py": ROLE.format(name="motd"),
        "tests/layers/test_motd.py": CHECKS,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return Site(tmp_path)


def loaded(site: Site, **settings: str) -> tuple[TargetHost, Roster]:
    request = Request(var=tuple(f"{name}={value}" for name, value in settings.items()))
    roster = Roster.load(site=site, request=request)
    return roster.targets("gpu01", ["motd"])[0], roster


def test_checks_of_a_site_are_run_with_the_variables_of_their_role(site: Site) -> None:
    checks = check_layers(*loaded(site), None)
    assert [(one.role, one.sentence, one.passed, one.why) for one in checks] == [
        ("motd", "Who logs in reads our text.", True, ""),
        ("motd", "The stack has a name.", True, ""),
    ]


def test_what_does_not_hold_is_said(site: Site) -> None:
    checks = check_layers(*loaded(site, motd_text="theirs"), None)
    assert [one.passed for one in checks] == [False, True]
    assert checks[0].why.startswith("it is theirs")


def test_how_the_operators_own_tests_are_run_changes_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x -k nothing -p no_such_plugin")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    assert [one.passed for one in check_layers(*loaded(site), None)] == [True, True]


UNASKED = '''\
import pytest
from hostwright.common.errors import BecomeError, Unreachable


@pytest.fixture(scope="session")
def lost():
    raise Unreachable("gpu01", "the connection was lost while systemctl ran", passing=True)


def test_the_service_runs(lost):
    """Its service runs."""


def test_root_agrees():
    raise BecomeError("gpu01", "sudo is not installed there")


def test_there_is_a_compiler_for_it():
    pytest.skip("this host has gcc 12 alone")


def test_it_is_not_so(variables):
    assert variables.text == "theirs"
'''


def test_what_could_not_be_asked_has_neither_passed_nor_failed(site: Site) -> None:
    (site.checks / "test_motd.py").write_text(UNASKED)
    target, roster = loaded(site)
    checks = check_layers(target, roster, None)
    assert [(one.checked, one.passed) for one in checks] == [*[(False, False)] * 3, (True, False)]
    assert checks[0].why == "gpu01: the connection was lost while systemctl ran"
    assert checks[2].why == "this host has gcc 12 alone"
    planned = HostPlan(Plan("gpu01", "house", ()))
    asked, unasked = Verdict(planned, checks), Verdict(planned, checks[:3])
    assert (asked.failed_roles, asked.unchecked_roles) == (("motd",), ("motd",))
    assert (unasked.failed_roles, unasked.unchecked_roles, unasked.passed) == ((), ("motd",), False)


CARDS = """\
def test_it_computes_on_a_card(no_gpu):
    no_gpu()


def test_the_text_is_ours(variables):
    assert variables.text == "ours"
"""


def test_a_check_that_needs_a_gpu_neither_passes_nor_fails_without_one(site: Site) -> None:
    (site.checks / "test_motd.py").write_text(CARDS)
    checks = check_layers(*loaded(site, motd_text="ours"), None)
    assert [(one.no_gpu, one.checked, one.passed, one.why) for one in checks] == [
        (True, False, False, "no GPU in this host"), (False, True, True, ""),
    ]  # fmt: skip
    verdict = Verdict(HostPlan(Plan("gpu01", "house", ())), checks)
    assert (verdict.passed, verdict.failed_roles, verdict.unchecked_roles) == (True, (), ())


def test_a_host_that_should_have_gpus_fails_the_check(site: Site) -> None:
    (site.checks / "test_motd.py").write_text(CARDS)
    checks = check_layers(*loaded(site, motd_text="ours", hostwright_gpus="8"), None)
    assert [(one.no_gpu, one.checked, one.passed) for one in checks] == [(False, True, False), (False, True, True)]
    assert "no GPU was found; the inventory says that the host has 8 GPUs (hostwright_gpus)" in checks[0].why


TIMED = """\
import time
from pathlib import Path

import pytest


def passed(name, least_s):
    began = time.monotonic()
    while time.monotonic() - began < least_s:
        pass
    with Path({log!r}).open("a") as log:
        log.write(f"{{name}} {{time.monotonic() - began}}\\n")


@pytest.fixture
def asked():
    passed("first", 0.02)
    yield
    passed("first", 0.03)


def test_it_asks(asked):
    passed("first", 0.04)


def test_it_looks():
    passed("second", 0.01)
"""


def test_the_seconds_of_a_check_are_what_it_took_with_its_fixtures(site: Site, tmp_path: Path) -> None:
    """Measured by the checks' own clock: at least the time inside them, and in total at most the time outside."""
    log = tmp_path / "log"
    (site.checks / "test_motd.py").write_text(TIMED.format(log=str(log)))
    began = time.monotonic()
    first, second = check_layers(*loaded(site), None)
    whole_s = time.monotonic() - began
    rows = [line.split() for line in log.read_text().splitlines()]
    inside = {name: sum(float(seconds) for other, seconds in rows if other == name) for name in ("first", "second")}
    assert len(rows) == 4
    rounding_s = 0.001
    assert inside["first"] - rounding_s <= first.duration_s
    assert inside["second"] - rounding_s <= second.duration_s
    assert first.duration_s + second.duration_s <= whole_s + rounding_s


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nothing_like_it\n", r":1: ModuleNotFoundError: No module named 'nothing_like_it'$"),
        ("\n\ndef test_(:\n", r":3: SyntaxError: "),
        ("limit = 1\nlimit.most\n", r":2: AttributeError: 'int' object has no attribute 'most'$"),
        (
            "import pytest\n\n@pytest.mark.parametrize('a', [1])\ndef test_it():\n    ...\n",
            "uses no argument 'a'",
        ),
    ],
)
def test_checks_that_cannot_be_read_are_an_error_of_the_host(site: Site, text: str, sentence: str) -> None:
    broken = site.checks / "test_motd.py"
    broken.write_text(text)
    with pytest.raises(
        HostError, match=f"^gpu01: checks of this host's layers cannot be imported: {broken}.*{sentence}"
    ):
        check_layers(*loaded(site), None)


def test_unreadable_checks_fail_only_hosts_with_that_layer(site: Site) -> None:
    (site.root / "roles/issue").mkdir()
    (site.root / "roles/issue/__init__.py").write_text(ROLE.format(name="issue"))
    (site.checks / "test_issue.py").write_text("import nothing_like_it\n")
    (site.inventory / "hosts.yml").write_text(
        "all: {hosts: {gpu01: {hostwright_roles: [motd]}, gpu02: {hostwright_roles: [motd, issue]}}}\n"
    )
    roster = Roster.load(site=site)
    whole, broken = roster.targets("all")
    with Checks(roster, broken.roles) as checks:
        assert [check.passed for check in checks.of(whole, None)] == [True, True]
        with pytest.raises(HostError, match=r"gpu02: .*test_issue.py:1: ModuleNotFoundError"):
            checks.of(broken, None)


@pytest.mark.parametrize(
    ("text", "line"), [("import os\nimport nothing_like_it\n", 2), ("def test_(:\n", 1)], ids=["import", "syntax"]
)
def test_a_broken_conftest_is_a_sentence_for_the_checks_beside_it_alone(site: Site, text: str, line: int) -> None:
    """The standard checks, which are elsewhere, still run."""
    broken = site.checks / "conftest.py"
    broken.write_text(text)
    (site.inventory / "hosts.yml").write_text(
        "all: {hosts: {gpu01: {hostwright_roles: [motd]}, gpu02: {hostwright_roles: [base], ansible_host: 127.0.0.1, "
        "ansible_port: 1}}}\n"
    )
    roster = Roster.load(site=site)
    ours, standard = roster.targets("all")
    with Checks(roster, [*ours.roles, *standard.roles]) as checks:
        with pytest.raises(
            HostError, match=f"gpu01: checks of this host's layers cannot be imported: {broken}:{line}: "
        ):
            checks.of(ours, None)
        assert {check.role for check in checks.of(standard, None)} == {"base"}


def test_a_conftest_above_the_site_is_somebody_elses(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest would run it: ``/tmp/conftest.py`` for each site below ``/tmp``."""
    above = site.root.parent / "conftest.py"
    above.write_text("open('above', 'w').close()\n")
    (site.root / "conftest.py").write_text("open('own', 'w').close()\n")
    monkeypatch.chdir(site.root)
    try:
        assert check_layers(*loaded(site), None)
    finally:
        above.unlink()
    assert {path.name for path in site.root.iterdir()} & {"above", "own"} == {"own"}


def test_a_conftest_above_hostwright_that_others_may_have_written_is_refused(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "venv/hostwright/standard/checks"
    folder.mkdir(parents=True)
    (tmp_path / "conftest.py").touch()
    monkeypatch.setattr(checking, "STANDARD_CHECKS", folder)
    checking._refuse_others_conftest()
    (tmp_path / "conftest.py").chmod(0o666)
    with pytest.raises(
        NotTrusted, match=r"pytest would run .*conftest\.py: others may write to it \(mode 666\); remove"
    ):
        checking._refuse_others_conftest()


def test_a_site_adds_checks_to_those_of_a_standard_role(site: Site) -> None:
    own = site.checks / "test_container.py"
    own.write_text(CHECKS)
    (role,) = [one for one in discover(*site.role_packages) if one.name == "container"]
    assert files_of(role, site) == [(STANDARD / "checks/test_container.py").resolve(), own]


def test_replacing_role_has_only_its_own_checks(site: Site) -> None:
    own = site.checks / "test_container.py"
    own.write_text(CHECKS)
    (site.root / "roles/container").mkdir()
    (site.root / "roles/container/__init__.py").write_text(ROLE.format(name="container"))
    (role,) = [one for one in discover(*site.role_packages) if one.name == "container"]
    assert files_of(role, site) == [own]


def test_in_this_repository_each_check_is_run_once() -> None:
    site = Site(Path(__file__).parents[3])
    for role in discover(*site.role_packages):
        assert files_of(role, site) == [site.checks / f"test_{role.name}.py"]


@pytest.fixture
def fleet(site: Site) -> Roster:
    """Several hosts; the checks of one never end."""
    (site.inventory / "hosts.yml").write_text(
        "all: {hosts: {'gpu[01:04]': {}, hung: {motd_text: hung}}, vars: {hostwright_roles: [motd]}}\n"
    )
    (site.checks / "test_motd.py").write_text(HANGING)
    return Roster.load(site=site)


HANGING = '''\
import os
import select


def test_a_first_one(target):
    """It ends."""


def test_the_text_is_ours(variables, target):
    """Who logs in reads our text."""
    print("no answer of ours")
    if variables.text == "hung":
        select.select([], [], [])
    assert False, f"{target.name} {os.getppid()}"
'''


def test_a_host_that_hangs_holds_up_no_other_and_is_ended(fleet: Roster) -> None:
    """One pytest for all hosts: their processes have one parent.

    On a loaded machine, the other hosts take some seconds.
    """
    targets = fleet.targets("all", ["motd"])
    with Checks(fleet, targets[0].roles, limit_s=12) as checks, ThreadPoolExecutor(5) as pool:
        results = {target.name: pool.submit(checks.of, target, None) for target in targets}
        others = [results[target.name].result() for target in targets if target.name != "hung"]
        assert not results["hung"].done()
        with pytest.raises(HostError, match=r"hung: .* within 12 s; still running: test_the_text_is_ours of motd$"):
            results["hung"].result()
    assert [[one.passed for one in found] for found in others] == [[True, False]] * 4
    said = [found[1].why.partition("\n")[0].split() for found in others]
    assert [name for name, _ in said] == ["gpu01", "gpu02", "gpu03", "gpu04"]
    assert len({parent for _, parent in said}) == 1


def test_a_pytest_that_dies_is_an_error_of_every_host(site: Site) -> None:
    (site.checks / "test_motd.py").write_text("import os\n\nos._exit(3)\n")
    target, roster = loaded(site)
    with Checks(roster, target.roles) as checks:
        for _ in range(2):
            with pytest.raises(HostError, match="could not be run"):
                checks.of(target, None)


def test_a_password_is_given_to_the_checks_and_written_nowhere(site: Site) -> None:
    (site.checks / "test_motd.py").write_text(PASSWORD)
    (check,) = check_layers(*loaded(site), Secret("hunter22"))
    assert check.passed, check.why


PASSWORD = '''\
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hostwright.verify.layer_checks import HOST


def test_it(pytestconfig):
    """Only the process that needs it knows the password."""
    password = pytestconfig.stash[HOST].password.reveal()
    assert password == "hunter22"
    assert password not in " ".join([*sys.orig_argv, *os.environ.values()])
'''


def test_a_host_whose_roles_have_no_checks_is_not_asked(site: Site) -> None:
    (site.checks / "test_motd.py").unlink()
    assert check_layers(*loaded(site), None) == ()
