"""An environment of ours taken away: the link, its venvs, and what was there before; and who runs from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.plan.model import Answer, Change, Facts
from hostwright.plan.roles.role import RoleContext
from hostwright.resources.originals import kept
from hostwright.resources.python.environments import EnvironmentVariables
from hostwright.resources.python.python import Venv, VenvGone
from hostwright.resources.python.users_files import HOMES
from hostwright.standard.roles.tensorflow import tensorflow
from tests.unit.support.facts import changes_of
from tests.unit.support.shell import ask, run
from tests.unit.support.stacks import load_stack

KEY = "0123456789ab"


class Host:
    """A directory with a link, venvs, and a place for what Hostwright keeps."""

    def __init__(self, root: Path):
        self.root = root
        self.homes = root / "opt/hostwright/venvs"
        self.link = root / "opt/tf it's"
        self.origin = root / "origin"
        self.gone = VenvGone(str(self.link), str(self.homes), "tf")

    def build(self, key: str = KEY, name: str = "tf") -> Path:
        home = self.homes / f"{name}-py3.9-{key}"
        (home / "bin").mkdir(parents=True)
        (home / "bin/python").symlink_to(sys.executable)
        return home

    def plan(self) -> Change | None:
        (probe,) = self.gone.probes()
        return self.gone.plan(Facts({probe: Answer(*ask(probe.script, origin=self.origin))}))

    def users(self) -> tuple[str, ...]:
        (probe,) = self.gone.probes()
        return self.gone.users(Facts({probe: Answer(*ask(probe.script, origin=self.origin))}))

    def remove(self) -> Change:
        change = self.plan()
        assert change is not None
        done = run(change.steps[0].script, origin=self.origin)
        assert done.returncode == 0, done.stderr
        assert self.plan() is None
        return change


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "opt").mkdir()
    return Host(tmp_path)


def test_link_and_venvs_go_and_the_last_one_takes_the_directories(host: Host) -> None:
    host.link.symlink_to(host.build())
    host.build("f" * 12)
    (host.homes / f"tf-py3.9-{KEY}.wheels").mkdir()
    assert host.remove().want == "absent"
    assert sorted(path.name for path in (host.root / "opt").iterdir()) == []


def test_a_directory_that_is_a_link_stays(host: Host) -> None:
    (host.root / "data").mkdir()
    host.homes.parent.symlink_to(host.root / "data")
    host.link.symlink_to(host.build())
    host.remove()
    assert list((host.root / "data").iterdir()) == []
    assert host.homes.parent.is_symlink()


def test_venvs_of_another_name_stay(host: Host) -> None:
    host.link.symlink_to(host.build())
    other = host.build(name="tf-2")
    host.remove()
    assert [path.name for path in host.homes.iterdir()] == [other.name]


def test_what_was_moved_aside_comes_back(host: Host) -> None:
    aside = Path(f"{host.link}.before-hostwright.4711")
    aside.mkdir()
    (aside / "README").write_text("mine")
    host.link.symlink_to(host.build())
    assert host.remove().want == "as before: the former file"
    assert (host.link / "README").read_text() == "mine"
    assert not host.link.is_symlink()


def test_a_link_of_before_comes_back(host: Host) -> None:
    host.link.symlink_to(host.build())
    copy = Path(kept(str(host.link)).replace("/var/lib/hostwright/origin", str(host.origin)))
    copy.parent.mkdir(parents=True)
    copy.symlink_to("/data/tf")
    host.remove()
    assert host.link.readlink() == Path("/data/tf")


def test_a_link_of_somebody_else_stays(host: Host) -> None:
    host.link.symlink_to("/data/tf")
    Path(f"{host.link}.before-hostwright.4711").mkdir()
    host.build()
    assert host.remove().want == "absent"
    assert host.link.readlink() == Path("/data/tf")
    assert Path(f"{host.link}.before-hostwright.4711").is_dir()


def test_a_host_without_it_plans_nothing(host: Host) -> None:
    assert host.plan() is None
    host.link.mkdir()
    assert host.plan() is None


def test_a_program_that_runs_from_it_is_disturbed_and_named(host: Host) -> None:
    home = host.build()
    host.link.symlink_to(home)
    change = host.plan()
    assert change is not None and change.disturbs == ""
    with subprocess.Popen(
        [f"{home}/bin/python", "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as job:
        try:
            change, users = host.plan(), host.users()
        finally:
            job.communicate(b"\n")
    assert change is not None
    assert change.disturbs == "removes the environment that jobs run from"
    assert [name for name in users if f"({job.pid})" in name]
    assert str(job.pid) not in change.have, "who comes and goes makes no other plan of it"


def test_every_venv_of_the_role_is_taken_away() -> None:
    resources = tensorflow.resources(EnvironmentVariables(), RoleContext(load_stack("tensorflow-2.9")))
    (venv,) = (one for one in resources if isinstance(one, Venv))
    assert venv.removal() == (VenvGone("/opt/tensorflow-2.9", HOMES, "tensorflow-2.9"),)


@given(st.text(max_size=60) | st.from_regex(r"(home|user|ours|aside)=.*", fullmatch=True))
def test_what_is_run_does_not_depend_on_what_a_host_answers(text: str) -> None:
    gone = VenvGone("/opt/tf", HOMES, "tf")
    scripts = {
        step.script for said in (text, "ours=") for one in changes_of(gone, {"ls -A": said}) for step in one.steps
    }
    assert len(scripts) == 1
