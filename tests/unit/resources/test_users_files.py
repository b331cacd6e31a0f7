"""What people put into a venv of ours is named before it moves, and never deleted: a real venv, and the real shell.

The cases are public reports of installers that deleted it: certbot#4037 (plugins that people had installed), cpython
#90484 and plone/documentation#1769 (``venv --clear`` took files, also hidden ones), dlang/installer#617 and
owncloud/client#6708 (an uninstaller took the whole directory), and kernels that Jupyter keeps in the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostwright.plan.model import Answer, Change, Facts
from hostwright.resources.python.python import Recipe, VenvGone
from hostwright.resources.python.users_files import MARKER, USERS_FILES
from hostwright.resources.python.venv_audit import audit_probe, parse_audit
from hostwright.resources.python.venv_scripts import CONSTRAINTS, create_script
from tests.unit.support.shell import ask, run

KEY = "0123456789ab"
DAY = "%Y-%m-%d"


class Disk:
    """A venv as the role builds it, with one pinned package, and what people added."""

    def __init__(self, root: Path):
        self.root, self.today = root, time.strftime(DAY)
        self.homes = root / "opt/hostwright/venvs"
        self.home = self.homes / f"tf-py3.9-{KEY}"
        self.link = root / "opt/tf"
        self.homes.mkdir(parents=True)
        subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(self.home)], check=True)
        (self.site,) = self.home.glob("lib/python3*/site-packages")
        self.package("numpy", "1.26.4", "numpy/core.py", "../../../bin/f2py", 'numpy/a, "b".py')
        self.package("pip", "24.0", "pip/__main__.py", "../../../bin/pip3")
        (self.home / CONSTRAINTS).write_text("# pins\nNumPy==1.26.4\n")
        (self.home / MARKER).write_text("complete\n")
        self.link.symlink_to(self.home)

    def package(self, name: str, version: str, *files: str) -> None:
        info = f"{name}-{version}.dist-info"
        rows = []
        for file in (*files, f"{info}/RECORD", f"{info}/METADATA"):
            path = Path(os.path.normpath(self.site / file))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
            quoted = '"' + file.replace('"', '""') + '"' if "," in file else file
            rows.append(f"{quoted},sha256=x,1")
        (self.site / info / "RECORD").write_text("\r\n".join(rows) + "\r\n")

    def add(self, path: str, text: str = "mine", mode: int = 0o640) -> None:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def added(self) -> list[str]:
        done = run(USERS_FILES + f"users_files '{self.home}'")
        assert done.returncode == 0, done.stderr
        return sorted(done.stdout.decode().splitlines())

    @property
    def aside(self) -> Path:
        (day,) = (self.root / "opt/hostwright/set-aside").iterdir()
        assert self.today <= day.name <= time.strftime(DAY)
        return day / self.home.name

    def gone(self) -> tuple[VenvGone, Change | None]:
        state = VenvGone(str(self.link), str(self.homes), "tf")
        (probe,) = state.probes()
        return state, state.plan(Facts({probe: Answer(*ask(probe.script, origin=self.root / "origin"))}))


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_a_venv_as_it_was_built_holds_nothing_of_people(disk: Disk) -> None:
    assert disk.added() == []
    (disk.site / "__pycache__").mkdir()
    (disk.site / "__pycache__/x.pyc").write_text("x")
    assert disk.added() == []


def test_notebooks_and_packages_are_named_by_their_highest_paths(disk: Disk) -> None:
    disk.add("notebooks/deep/a.ipynb")
    disk.add("notebooks/b.ipynb")
    disk.add("lib/run it's.py")
    disk.package("Certbot_Plugin", "1.0", "certbot_plugin/x.py", "../../../bin/certbot")
    site = disk.site.relative_to(disk.home)
    assert disk.added() == sorted(
        [
            "notebooks",
            "lib/run it's.py",
            "bin/certbot",
            f"{site}/certbot_plugin",
            f"{site}/Certbot_Plugin-1.0.dist-info",
        ]
    )


def test_a_removal_names_them_and_keeps_them_with_mode_and_time(disk: Disk) -> None:
    disk.add("notebooks/a.ipynb", "work")
    (disk.home / "notebooks").chmod(0o700)
    disk.package("toolbelt", "1.0", "toolbelt/x.py")
    _, change = disk.gone()
    assert change is not None
    (warning,) = change.warnings
    assert warning == (
        f"files that people added to {disk.home} are moved to /opt/hostwright/set-aside/DATE: notebooks; "
        "package toolbelt 1.0"
    )
    done = run(change.steps[0].script, origin=disk.root / "origin")
    assert done.returncode == 0, done.stderr
    assert not disk.home.exists()
    assert (disk.aside / "notebooks/a.ipynb").read_text() == "work"
    assert (disk.aside / "notebooks/a.ipynb").stat().st_mode & 0o777 == 0o640
    assert (disk.aside / "notebooks").stat().st_mode & 0o777 == 0o700
    assert (disk.aside / disk.site.relative_to(disk.home) / "toolbelt/x.py").exists()
    assert disk.gone()[1] is None


def test_what_cannot_be_moved_stops_the_removal_before_anything_goes(disk: Disk) -> None:
    disk.add("notebooks/a.ipynb")
    (disk.root / "opt/hostwright/set-aside").write_text("a file where the directory belongs")
    _, change = disk.gone()
    assert change is not None
    assert run(change.steps[0].script, origin=disk.root / "origin").returncode != 0
    assert (disk.home / "notebooks/a.ipynb").exists()


def test_a_venv_that_is_built_anew_gives_them_up_first(disk: Disk) -> None:
    disk.add("notebooks/a.ipynb")
    recipe = Recipe("tf", "3.9", "numpy==1.26.4", "numpy==1.26.4\n")
    script = create_script(recipe, sys.executable).replace(recipe.home, str(disk.home)).partition("\n[ ")[0]
    script = script[: script.index(" -I -m venv --clear")].rsplit("\n", 1)[0]
    assert run(script).returncode == 0
    assert (disk.aside / "notebooks/a.ipynb").exists()


def test_an_older_venv_that_the_next_link_removes_is_named(disk: Disk) -> None:
    disk.add("notebooks/a.ipynb")
    disk.link.unlink()
    new = disk.homes / "tf-py3.9-bbbbbbbbbbbb"
    status, text = ask(audit_probe(str(disk.link), (str(new),), CONSTRAINTS).script)
    assert status == 0
    assert parse_audit(text).users_files == {str(disk.home): ("notebooks",)}


def test_those_of_the_whole_venv_in_use_are_not_looked_for(disk: Disk) -> None:
    disk.add("notebooks/a.ipynb")
    _, text = ask(audit_probe(str(disk.link), (str(disk.home),), CONSTRAINTS).script)
    assert parse_audit(text).users_files == {}


def test_a_name_with_a_line_break_makes_all_of_it_theirs(disk: Disk) -> None:
    disk.add("two\nlines")
    assert disk.added() == ["."]
    _, change = disk.gone()
    assert change is not None and run(change.steps[0].script, origin=disk.root / "origin").returncode == 0
    assert (disk.aside / "two\nlines").read_text() == "mine"
