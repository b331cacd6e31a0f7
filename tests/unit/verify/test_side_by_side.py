"""Tests of parallel checks of one host, in verify's own pytest, with this machine as the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright.common.errors import HostError
from hostwright.plan.roles.site import Site
from hostwright.plan.targets import Roster, TargetHost
from hostwright.verify.checking import Checks, check_layers
from hostwright.verify.verdict import Check
from tests.unit.support.hostjobs import until
from tests.unit.verify.test_checking import ROLE

BEGIN = '''\
import os
import select
from pathlib import Path

import pytest

LOG, PLACE = Path({log!r}), Path({place!r})


def note(text):
    with LOG.open("a") as log:
        log.write(f"{{text}} {{os.getpid()}}\\n")


def meet(mine, theirs):
    """Wait for another check, which waits for this one."""
    (PLACE / mine).touch()
    while not (PLACE / theirs).exists():
        select.select([], [], [], 0.01)
'''


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A site with a role of its own, and this machine as its only host."""
    for name, text in {
        "inventory/hosts.yml": "all: {hosts: {here: {ansible_connection: local, hostwright_roles: [motd]}}}\n",
        "tasks.py": "",
        "roles/motd/__init__.py": ROLE.format(name="motd"),
    }.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    return Site(tmp_path / "site")


def loaded(site: Site, log: Path, text: str) -> tuple[TargetHost, Roster]:
    site.checks.mkdir(parents=True)
    (site.checks / "test_motd.py").write_text(BEGIN.format(log=str(log), place=str(log.parent)) + text)
    roster = Roster.load(site=site)
    return roster.targets("here", ["motd"])[0], roster


def passed(checks: tuple[Check, ...]) -> list[str]:
    assert [check.why for check in checks if not check.passed] == []
    return [check.check for check in checks]


def noted(log: Path) -> list[tuple[str, str]]:
    rows = [line.split() for line in log.read_text().splitlines()]
    return [(what, pid) for what, pid in rows]


MEETING = """

@pytest.mark.beside
def test_one():
    meet("one", "other")


def test_first():
    note("first")


@pytest.mark.beside
def test_other():
    meet("other", "one")


def test_second():
    note("second")
"""


def test_marked_checks_run_at_the_same_time_and_are_told_in_their_order(site: Site, log: Path) -> None:
    assert passed(check_layers(*loaded(site, log, MEETING), None)) == [
        "test_one", "test_first", "test_other", "test_second",
    ]  # fmt: skip


def test_checks_of_a_site_that_say_nothing_are_one_after_another_in_one_process(site: Site, log: Path) -> None:
    passed(check_layers(*loaded(site, log, MEETING), None))
    (first, its), (second, other) = noted(log)
    assert (first, second, its) == ("first", "second", other)


ALONE = """

@pytest.fixture(scope="module", autouse=True)
def begun():
    note("begin")
    yield
    note("end")


@pytest.mark.alone
def test_it_restarts_something():
    note("alone")


@pytest.mark.alone
def test_it_restarts_another_thing():
    note("alone")


@pytest.mark.beside
def test_one():
    meet("one", "other")


@pytest.mark.beside
def test_other():
    meet("other", "one")
"""


def test_a_check_that_disturbs_others_begins_when_they_have_ended(site: Site, log: Path) -> None:
    assert passed(check_layers(*loaded(site, log, ALONE), None)) == [
        "test_it_restarts_something", "test_it_restarts_another_thing", "test_one", "test_other",
    ]  # fmt: skip
    what = [what for what, _ in noted(log)]
    first = what.index("alone")
    assert what.count("alone") == 2
    assert what[:first].count("end") == 2  # the other two checks, which ran in processes of their own
    assert set(what[first:]) <= {"alone", "begin", "end"}
    assert len({pid for _, pid in noted(log)}) == 3


def test_many_hosts_have_one_lane_each(site: Site, log: Path) -> None:
    """In the order of the file, except for checks with the marker ``alone``."""
    text = ALONE.replace('meet("one", "other")', 'note("one")').replace('meet("other", "one")', 'note("other")')
    target, roster = loaded(site, log, text)
    with Checks(roster, target.roles, hosts=1000) as checks:
        passed(checks.of(target, None))
    what = [what for what, _ in noted(log) if what not in {"begin", "end"}]
    assert what == ["one", "other", "alone", "alone"]
    assert len({pid for _, pid in noted(log)}) == 1


CONNECTION = """

@pytest.mark.beside
@pytest.mark.parametrize("number", range(6))
def test_it(host, root_run, number):
    if number < 2:
        meet(f"check {number}", f"check {1 - number}")
    climb = "p=$PPID; while read -r _ name _ up _ </proc/$p/stat; do case $name in *sh*) p=$up;; *) break;; esac; done"
    done = host.run("/bin/sh -c %s", climb + "; echo $p")
    note(done.stdout.strip())
    assert host.run("exit 3").rc == 3
    assert host.run("cat %s", "/no such file").stderr
"""


def test_each_lane_has_one_connection_for_all_its_checks(site: Site, log: Path) -> None:
    assert len(passed(check_layers(*loaded(site, log, CONNECTION), None))) == 6
    starters, lanes = ({row[place] for row in noted(log)} for place in (0, 1))
    assert 1 < len(lanes) <= 4
    assert len(starters) == len(lanes) == len(set(noted(log)))


HANGING = '''

def test_a_first_one():
    """It ends."""


@pytest.mark.beside
def test_it_hangs():
    select.select([], [], [])


@pytest.mark.beside
def test_it_hangs_as_well():
    select.select([], [], [])
'''


def test_checks_that_hang_are_named_and_all_processes_of_the_host_end(site: Site, log: Path) -> None:
    target, roster = loaded(site, log, HANGING + "    note('never')\n")
    with Checks(roster, target.roles, limit_s=12) as checks:
        with pytest.raises(HostError) as error:
            checks.of(target, None)
        stats = Path("/proc").glob
        until(lambda: not any(_child_of(path, checks._process.pid) for path in stats("[0-9]*/stat")), "they end")
    named = "still running: test_it_hangs of motd, test_it_hangs_as_well of motd"
    assert str(error.value) == f"here: the checks did not finish within 12 s; {named}"


def _child_of(stat: Path, pid: int) -> bool:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1]) == pid
    except OSError:
        return False


DYING = '''

@pytest.mark.beside
def test_it_is_killed():
    os._exit(9)


def test_the_other():
    """It ends."""
'''


def test_a_process_that_dies_is_an_error_of_the_host(site: Site, log: Path) -> None:
    with pytest.raises(HostError, match="could not be run"):
        check_layers(*loaded(site, log, DYING), None)


SESSION = """

@pytest.fixture(scope="session")
def kept():
    note("made")
    yield
    note("gone")
    raise OSError("it cannot be taken away")


def test_one(kept):
    note("one")
    meet("one", "two")


@pytest.mark.beside
def test_two():
    meet("two", "one")
"""


def test_what_is_of_the_session_ends_with_its_lane_and_fails_there(site: Site, log: Path) -> None:
    one, two = check_layers(*loaded(site, log, SESSION), None)
    assert (one.passed, one.why, two.passed) == (False, "it cannot be taken away", True)
    assert [what for what, _ in noted(log)] == ["made", "one", "gone"]


def test_marks_are_known_to_pytest(site: Site, log: Path) -> None:
    """A site's settings may reject unknown marks; Hostwright's must be accepted."""
    assert passed(check_layers(*loaded(site, log, KNOWN), None)) == ["test_it"]


KNOWN = """

def test_it(pytestconfig):
    names = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert {"alone", "beside"} <= names
"""


IMPORTED = """

import sys


def test_one():
    assert "paramiko" in sys.modules, "each process of each host would import it"
"""


def test_what_a_connection_needs_is_imported_before_hosts_have_processes(site: Site, log: Path) -> None:
    assert passed(check_layers(*loaded(site, log, IMPORTED), None)) == ["test_one"]


BREAKS = """\
    text: str = "ours"

    def __post_init__(self) -> None:
        if self.text == "theirs" and Path({marker!r}).exists():
            raise RuntimeError("a role of the site that breaks")
"""


def test_a_host_of_which_nothing_can_be_read_any_more_ends_no_checks_of_others(site: Site, log: Path) -> None:
    hosts = "{here: &host {ansible_connection: local, hostwright_roles: [motd]}, there: {<<: *host, motd_text: theirs}}"
    (site.root / "inventory/hosts.yml").write_text(f"all: {{hosts: {hosts}}}\n")
    role = ROLE.format(name="motd").replace('    text: str = "ours"\n', BREAKS.format(marker=str(log)))
    (site.root / "roles/motd/__init__.py").write_text(role.replace("\n", "\nfrom pathlib import Path\n", 1))
    here, roster = loaded(site, log, "\n\ndef test_it():\n    pass\n")
    there = roster.targets("there", ["motd"])[0]
    log.touch()
    with Checks(roster, here.roles, hosts=2) as checks:
        with pytest.raises(HostError, match="a role of the site that breaks"):
            checks.of(there, None)
        assert passed(checks.of(here, None)) == ["test_it"]
