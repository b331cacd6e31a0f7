"""Packages that must not be there: the plan shows what goes with them, and no more goes (with the real apt)."""

from __future__ import annotations

import os
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.resources.originals import INSTALLED
from hostwright.resources.packages.packages import DebsAbsent, install_script
from tests.unit.support.aptroot import AptRoot, deb, installed, repository, states, work_for_real
from tests.unit.support.shell import ask, program, run

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="dpkg --root needs root")
NO_ODD = DebsAbsent(("odd-*", "libodd-gl-[0-9]*"), "two break each other", keep=("odd-container*",))


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    apt = AptRoot(tmp_path)
    work_for_real(apt, tmp_path, monkeypatch)
    program(tmp_path / "bin", "ldconfig", "")
    return apt


def plan(apt: AptRoot, state: DebsAbsent = NO_ODD) -> Change | None:
    answers = {probe: Answer(*ask(probe.script.replace("/var/lib/dpkg", str(apt.dpkg)))) for probe in state.probes()}
    return state.plan(Facts(answers))


def made(change: Change | None) -> CompletedProcess[bytes]:
    assert change is not None
    return run(change.steps[0].script)


def test_what_depends_on_them_is_named_and_goes(apt: AptRoot) -> None:
    """beclab/Olares#3482: a site's package that depends on a part of the foreign driver went without being named."""
    apt.status(
        installed("odd-utils-535", Depends="libodd-gl-535"),
        installed("libodd-gl-535"),
        installed("odd-container-toolkit"),
        installed("site-tools", "7", "hold ok installed", Depends="odd-utils-535"),
        installed("site-extra", Depends="site-tools"),
        installed("bash", Recommends="odd-utils-535"),
    )
    change = plan(apt)
    assert change is not None
    assert change.have == "libodd-gl-535 1, odd-utils-535 1, site-extra 1, site-tools 7"
    assert change.warnings == ("packages that depend on them are removed too: site-extra, site-tools",)
    done = made(change)
    assert done.returncode == 0, done.stdout
    assert states(apt) == {"bash": "ii", "odd-container-toolkit": "ii"}
    assert plan(apt) is None


def test_more_than_the_plan_showed_is_never_taken(apt: AptRoot) -> None:
    apt.status(installed("odd-utils"))
    change = plan(apt)
    assert change is not None and not change.warnings
    apt.status(installed("odd-utils"), installed("site-tools", Depends="odd-utils"))
    done = made(change)
    assert done.returncode == 1
    assert b"hostwright: error: apt would also remove, which the plan did not show: site-tools" in done.stdout
    assert states(apt) == {"odd-utils": "ii", "site-tools": "ii"}


def test_where_apt_cannot_say_what_goes_along_the_plan_says_so_and_nothing_goes(apt: AptRoot) -> None:
    """apt simulates nothing on a host on which another package lacks what it needs."""
    apt.status(installed("odd-utils"), installed("site-tools", Depends="odd-utils"), installed("lost", Depends="gone"))
    change = plan(apt)
    reason = "Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution)."
    assert change is not None
    assert change.warnings == (
        f"apt cannot compute which packages depend on them ({reason}); if the change finds the same, it fails and "
        "removes nothing",
    )
    done = made(change)
    assert done.returncode == 1
    assert done.stdout.decode().splitlines()[-1] == (
        f"hostwright: error: apt cannot say what else it would remove with odd-utils ({reason}), so that nothing was"
        " removed: run apt-get -s purge odd-utils on the host, fix what it reports, and provision again"
    )
    assert states(apt) == {"odd-utils": "ii", "site-tools": "ii", "lost": "ii"}


def test_nothing_is_installed_in_their_place(apt: AptRoot, tmp_path: Path) -> None:
    """apt, which knows another package that would do, would rather bring that than remove what depends on it."""
    repository(tmp_path / "r", deb(tmp_path, "odd-utils-550"), deb(tmp_path, "odd-utils-535"))
    apt.source(f"deb [trusted=yes] file:{tmp_path}/r stable main\n")
    assert run("apt-get -q update").returncode == 0
    apt.status(installed("odd-utils-535"), installed("site-tools", Depends="odd-utils-535 | odd-utils-550"))
    done = made(plan(apt))
    assert done.returncode == 0, done.stdout
    assert states(apt) == {}


def test_a_host_without_them_is_asked_nothing_of_apt(apt: AptRoot) -> None:
    apt.status(installed("odd-container-toolkit"), installed("todd-1"), installed("bash"))
    probe = NO_ODD.probes()[1].script.replace("/var/lib/dpkg", str(apt.dpkg))
    program(apt.config.parent / "bin", "apt-get", f"echo asked >>{apt.calls}")
    assert ask(probe) == (0, "")
    assert "asked" not in apt.calls.read_text()
    assert plan(apt) is None


def test_those_that_went_meanwhile_are_no_failure(apt: AptRoot) -> None:
    apt.status(installed("odd-utils"), installed("bash"))
    change = plan(apt)
    apt.status(installed("bash"))
    assert made(change).returncode == 0


def test_an_installation_takes_nothing_away_and_moves_nothing_that_is_held(apt: AptRoot, tmp_path: Path) -> None:
    repository(
        tmp_path / "r",
        deb(tmp_path, "engine", Conflicts="runtime"),
        deb(tmp_path, "tool", Depends="lib (>= 2)"),
        deb(tmp_path, "lib", "2"),
    )
    apt.source(f"deb [trusted=yes] file:{tmp_path}/r stable main\n")
    assert run("apt-get -q update").returncode == 0
    before = (installed("runtime"), installed("site-tools", Depends="runtime"))
    apt.status(*before, installed("lib", state="hold ok installed"))
    done = run(install_script(("engine",)))
    assert done.returncode == 1
    assert b"hostwright: error: to install engine, apt would remove site-tools runtime" in done.stdout
    (tmp_path / "ours").write_text("runtime\nsite-tools\n")  # a former version of the stack had another
    assert run(install_script(("engine",)).replace(INSTALLED, str(tmp_path / "ours"))).returncode == 0
    assert states(apt) == {"engine": "ii", "lib": "hi"}
    apt.status(*before, installed("lib", state="hold ok installed"))
    done = run(install_script(("tool",)))
    assert done.returncode == 100
    assert b"you have held broken packages" in done.stdout
    assert states(apt) == {"runtime": "ii", "site-tools": "ii", "lib": "hi"}
    apt.status(*before, installed("lib"))
    done = run(install_script(("tool",)))
    assert done.returncode == 0, done.stdout
    assert states(apt) == {"runtime": "ii", "site-tools": "ii", "lib": "ii", "tool": "ii"}
