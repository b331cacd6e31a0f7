"""The command ``hostwright``: the tasks of ``invoke`` in a site, and ``--site``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright import __version__
from hostwright.cli.program import program
from hostwright.cli.tasks import namespace
from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request

CHECKOUT = Path(__file__).parents[3]
ALONE = ("init", "completion")  #: verbs that only `hostwright` has

#: tasks.py of a site with its own task, as in docs/operators/sites.md
OWN_TASKS = '''
from invoke import Collection, task

from hostwright.cli.tasks import VERBS


@task
def racks(c):
    """Show the racks of this site."""
    print("rack3, rack4")


namespace = Collection(*VERBS, racks)
'''


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a site outside the working directory."""
    (tmp_path / "site/inventory").mkdir(parents=True)
    (tmp_path / "site/tasks.py").touch()
    (tmp_path / "site/inventory/hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    monkeypatch.setenv("HOSTWRIGHT_SITE", "")  # restores it afterwards
    return tmp_path / "site"


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the exit status of a call, and its output."""
    status = 0
    try:
        program.run(["hostwright", *words])
    except SystemExit as end:
        status = int(end.code or 0)
    return status, *capfd.readouterr()


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a site with ``hostwright init``, as the working directory."""
    assert init(Request(), str(tmp_path / "made")) == 0
    monkeypatch.chdir(tmp_path / "made")
    monkeypatch.delenv("HOSTWRIGHT_SITE", raising=False)
    return tmp_path / "made"


def names() -> set[str]:
    """Return the verbs that were known in the last call."""
    assert program.namespace is not None
    return set(program.namespace.task_names)


def test_it_has_the_verbs_of_invoke_and_two_of_its_own(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capfd, "--list")
    assert status == 0
    assert "provision" in out
    assert names() == {*namespace.task_names, *ALONE}


@pytest.mark.parametrize("forbidden", [True, False])
def test_invoke_compiles_our_modules_once_unless_the_user_forbids_it(tmp_path: Path, forbidden: bool) -> None:
    """Otherwise each start compiles them all: 0.2 of 0.6 seconds of CPU."""
    (tmp_path / "tasks.py").write_text("from hostwright.cli.tasks import namespace\n")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {"PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"), "PYTHONPATH": str(CHECKOUT)}
    env |= {"PYTHONDONTWRITEBYTECODE": "1"} if forbidden else {}
    command = [sys.executable, "-m", "invoke", "--list"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True)
    assert bool(list((tmp_path / "compiled").rglob("look.*.pyc"))) is not forbidden


def test_a_site_may_have_tasks_of_its_own(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (made / "tasks.py").write_text(OWN_TASKS)
    assert run(capfd, "racks") == (0, "rack3, rack4\n", "")
    assert "Show the racks of this site." in run(capfd, "--list")[1]
    assert names() == {*namespace.task_names, *ALONE, "racks"}


def test_tasks_of_a_site_are_found_from_anywhere(
    made: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (made / "tasks.py").write_text(OWN_TASKS)
    monkeypatch.setenv("HOSTWRIGHT_SITE", "")  # restores it afterwards
    monkeypatch.chdir(made / "roles")
    assert run(capfd, "racks") == (0, "rack3, rack4\n", "")
    monkeypatch.chdir("/")
    for words in ("--site", str(made), "racks"), ("racks", f"--site={made}"):
        monkeypatch.setenv("HOSTWRIGHT_SITE", "")
        assert run(capfd, *words) == (0, "rack3, rack4\n", "")


def test_a_task_of_a_site_takes_the_place_of_a_standard_one(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    alone = "from invoke import task\n\n@task\ndef audit(c):\n    print('ours')\n"
    (made / "tasks.py").write_text(alone)
    assert run(capfd, "audit") == (0, "ours\n", "")
    assert "Show what would change" in run(capfd, "--help", "plan")[1], "the other verbs are the standard ones"
    assert run(capfd, "audit.diff")[0] != 0


def test_tasks_of_one_site_are_unknown_in_another(
    made: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (made / "tasks.py").write_text(OWN_TASKS)
    assert run(capfd, "racks")[0] == 0
    assert init(Request(), str(tmp_path / "other")) == 0
    monkeypatch.chdir(tmp_path / "other")
    status, _, err = run(capfd, "racks")
    assert status == 2
    assert "unknown verb 'racks'" in err


def test_a_sites_own_file_of_settings_is_read(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (made / "invoke.yml").write_text("racks: rack7\n")
    (made / "tasks.py").write_text(OWN_TASKS.replace('"rack3, rack4"', "c.racks"))
    assert run(capfd, "racks") == (0, "rack7\n", "")


def test_without_a_site_it_has_the_standard_verbs(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "--list")[0] == 0
    assert names() == {*namespace.task_names, *ALONE}


def test_it_says_its_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "--version") == (0, f"Hostwright {__version__}\n", "")


@pytest.mark.parametrize("words", [("--site", "../site", "hosts"), ("hosts", "--site", "../site")])
def test_a_site_is_named_before_or_after_the_verb(
    site: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    status, out, err = run(capfd, *words)
    assert (status, err) == (0, "")
    assert "gpu01" in out


def test_outside_of_a_site_a_verb_says_what_to_do(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capfd, "hosts")
    assert (status, out) == (2, "")
    assert "no site found" in err
    assert "hostwright init DIR" in err


def test_a_site_that_is_none_is_refused(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, "--site", str(site.parent), "hosts")
    assert status == 2
    assert "--site, HOSTWRIGHT_SITE" in err
    assert "is not a site" in err


#: roles/racks/tasks.py of a site: a role with verbs
ROLES_VERBS = '''
from invoke import Collection, task


@task
def show(c):
    """Show the racks of this site."""
    print("rack3")


namespace = Collection("racks", show)
'''


def test_a_role_brings_verbs(made: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (made / "roles/racks").mkdir()
    (made / "roles/racks/__init__.py").write_text("raise SystemExit('the verbs need none of this')\n")
    (made / "roles/racks/tasks.py").write_text(ROLES_VERBS)
    assert run(capfd, "racks.show") == (0, "rack3\n", "")
    assert names() == {*namespace.task_names, *ALONE, "racks.show"}
    command, env = [sys.executable, "-m", "invoke", "racks.show"], {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "rack3\n", "invoke knows them as well"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\ny = nobody\n", "tasks.py:2: NameError: name 'nobody' is not defined"),
        ("x = 1\ny = = 2\n", "tasks.py:2: SyntaxError: invalid syntax"),
        ("x = 1\n", "tasks.py: expected `namespace = Collection(NAME, …)`, the verbs of the role"),
    ],
)
def test_a_mistake_in_a_roles_verbs_is_said_with_its_line(
    made: Path, capfd: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    (made / "roles/racks").mkdir()
    (made / "roles/racks/tasks.py").write_text(text)
    status, out, errors = run(capfd, "racks.show")
    assert (status, out) == (2, "")
    assert sentence in errors
    assert "Traceback" not in errors


def test_what_a_verb_imports_is_compiled_once(site: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"), "PYTHONPATH": str(CHECKOUT)}
    words = [sys.executable, "-m", "hostwright", "--site", str(site), "--list"]
    subprocess.run(words, env=environment, capture_output=True, check=True)
    late = CHECKOUT / "hostwright/plan/roles"  # imported after Invoke has parsed its own options
    assert list((tmp_path / "compiled").joinpath(*late.parts[1:]).glob("site.*.pyc"))
