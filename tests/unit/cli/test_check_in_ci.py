"""The files of docs/ci.md, in a site: their commands succeed for a good site and fail for a broken one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request
from tests.places import PROJECT
from tests.unit.support.documents import blocks

FILES = {block.file: block.text for block in blocks("docs/ci.md") if block.file}
GITHUB, GITLAB, COMMIT = ".github/workflows/hostwright.yml", ".gitlab-ci.yml", ".pre-commit-config.yaml"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a new site with one host."""
    init(Request(), str(tmp_path / "site"))
    (tmp_path / "site/inventory/hosts.yml").write_text("all: {hosts: {gpu01: {}}}\n")
    return tmp_path / "site"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a CI machine: a shell, git, this Hostwright, and a pip that accepts a file of
    requirements."""
    programs = {
        "hostwright": f'exec "{sys.executable}" -m hostwright "$@"',
        "pip": '[ "$1" = install ] && [ "$2" = -r ] && grep -q "^hostwright==" "$3"',
    }
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    home = {"HOME": str(tmp_path), "PYTHONPATH": str(PROJECT), "GIT_CONFIG_NOSYSTEM": "1"}
    return {**home, "PATH": f"{folder}:{os.defpath}", "CI": "true"}


def scripts() -> dict[str, list[str]]:
    """Return file → the commands that it runs."""
    github: Any = yaml.safe_load(FILES[GITHUB])
    (job,) = github["jobs"].values()
    gitlab: Any = yaml.safe_load(FILES[GITLAB])
    (other,) = gitlab.values()
    return {
        GITHUB: [step["run"] for step in job["steps"] if "run" in step],
        GITLAB: other["script"],
        "run": [".ci/run"],
    }


@pytest.mark.parametrize("name", [GITHUB, GITLAB, "run"])
def test_a_pipeline_passes_a_good_site_and_fails_a_broken_one(
    name: str, site: Path, environment: dict[str, str]
) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        lines = "\n".join(scripts()[name])
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=site, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    good = run()
    assert good.returncode == 0, good.stderr
    assert good.stdout.splitlines()[-1].endswith(": no mistakes (1 host, 1 stack, 0 roles of its own)")
    (site / "inventory/hosts.yml").write_text("all: {hosts: {gpu01: {stack: nosuch}}}\n")
    broken = run()
    assert broken.returncode == 2
    assert "inventory/hosts.yml:1:" in broken.stdout
    assert broken.stderr == ""


def test_the_workflow_may_only_read(site: Path) -> None:
    assert yaml.safe_load(FILES[GITHUB])["permissions"] == {"contents": "read"}


def test_a_commit_is_checked_where_it_has_files_of_the_site(site: Path, environment: dict[str, str]) -> None:
    """With pre-commit itself, which also refuses unknown settings."""
    (site / COMMIT).write_text(FILES[COMMIT])
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]

    def hook() -> subprocess.CompletedProcess[str]:
        subprocess.run([*git, "add", "."], cwd=site, env=environment, check=True)
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run"],
            cwd=site, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    subprocess.run([*git, "init", "--quiet"], cwd=site, env=environment, check=True)
    assert hook().returncode == 0
    subprocess.run([*git, "commit", "--quiet", "-m", "a site"], cwd=site, env=environment, check=True)
    (site / "README").write_text("ours\n")
    assert "Skipped" in hook().stdout
    (site / "templates/motd.j2").write_text("{{ text\n")
    done = hook()
    assert done.returncode == 1
    assert "templates/motd.j2:1: " in done.stdout
