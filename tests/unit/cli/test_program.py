"""The command ``hostwright``: the tasks of ``invoke`` in a site, and a site that is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostwright import __version__
from hostwright.cli.program import program
from hostwright.cli.tasks import namespace


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site that the working directory is not in."""
    (tmp_path / "site/inventory").mkdir(parents=True)
    (tmp_path / "site/tasks.py").touch()
    (tmp_path / "site/inventory/hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    monkeypatch.setenv("HOSTWRIGHT_SITE", "")  # so that it is as it was, afterwards
    return tmp_path / "site"


def run(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit status of a call, and what it printed."""
    status = 0
    try:
        program.run(["hostwright", *words])
    except SystemExit as end:
        status = int(end.code or 0)
    return status, *capfd.readouterr()


def test_it_has_the_verbs_of_invoke_and_init(capfd: pytest.CaptureFixture[str]) -> None:
    assert program.namespace is not None
    assert set(program.namespace.task_names) == {*namespace.task_names, "init"}
    status, out, _ = run(capfd, "--list")
    assert status == 0
    assert "provision" in out


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
    assert "there is no site here" in err
    assert "hostwright init DIR" in err


def test_a_site_that_is_none_is_refused(site: Path, capfd: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capfd, "--site", str(site.parent), "hosts")
    assert status == 2
    assert "--site, HOSTWRIGHT_SITE" in err
    assert "is no site" in err
