"""The page "A stack without TensorFlow": its files make a site, and its commands run there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.cli.tasks.begin import init
from hostwright.common.request import Request
from hostwright.plan.roles.site import Site
from hostwright.plan.targets import Roster
from tests.places import PROJECT
from tests.unit.support.documents import blocks, commands

PAGE = "docs/own-stack.md"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A new site with every file of the page."""
    root = tmp_path / "site"
    assert init(Request(), str(root)) == 0
    (root / "inventory/hosts.yml").write_text("all: {hosts: {gpu01: {ansible_host: 192.0.2.1}}}\n")
    for block in (block for block in blocks(PAGE) if block.file):
        (root / block.file).parent.mkdir(parents=True, exist_ok=True)
        (root / block.file).write_text(block.text)
    return root


def test_its_commands_run_and_its_driver_stands_in(site: Path) -> None:
    program = f'"{sys.executable}" -m hostwright'
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "HOSTWRIGHT_SITE": str(site)}
    for command in commands(PAGE):
        text = command.text.replace("hostwright ", f"{program} ", 1) if "hostwright " in command.text else command.text
        done = subprocess.run(text, shell=True, cwd=site, env=env, capture_output=True, text=True, check=False)  # noqa: S602 - of our own page
        assert done.returncode == command.status, f"{command}: {done.stdout}{done.stderr}"
    (host,) = Roster.load(site=Site(site)).targets("gpu01")
    assert [role.name for role in host.roles] == ["base", "gpudriver"]
    assert host.stack.versions()["driver"] == "550.163.01"
    assert next(rules.role for rules in host.desired.rules if rules.rules) == "gpudriver"


@pytest.mark.parametrize("tool", [["ruff", "check", "."], ["mypy", "--follow-imports=silent"]], ids=["ruff", "mypy"])
def test_its_files_pass_lint_and_types(tool: list[str], site: Path) -> None:
    env = {**os.environ, "MYPYPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-m", *tool], cwd=site, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
