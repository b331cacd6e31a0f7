"""The file of a lab that is gone: its hosts are in the inventory, and nobody answers for them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.places import PROJECT
from tests.unit.cli.mistakes.desk import Desk, Said

FILE = """\
# Written by `lab up`; removed by `lab down`. Not for editing.
lab:
  hosts:
    gpu01: {ansible_host: 127.0.0.1, ansible_port: 9}
    gpu02: {ansible_host: 127.0.0.1, ansible_port: 9}
  vars: {stack: tensorflow-2.9}
"""


class Checkout(Desk):
    """A copy of the checkout, with the lab's tasks, in which `lab up` wrote its file and the lab is gone."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.site = folder / "checkout"
        without = shutil.ignore_patterns("__pycache__", "lab*.yml")
        for part in "lab", "inventory":
            shutil.copytree(PROJECT / part, self.site / part, ignore=without)
        shutil.copy(PROJECT / "tasks.py", self.site)
        self.write("inventory/lab.yml", FILE)

    def says(self, line: str, program: str = "hostwright") -> Said:
        places = {"PYTHONPATH": f"{self.site}{os.pathsep}{PROJECT}", "HOSTWRIGHT_LAB_STATE": str(self.folder / "labs")}
        return self.types(line, program=program, env=places)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("program", ["hostwright", "invoke"])
@pytest.mark.parametrize("verb", ["hosts", "plan", "audit", "provision"])
def test_a_stale_lab_file(checkout: Checkout, verb: str, program: str) -> None:
    said = checkout.says(f"{verb} --hosts gpu01", program)
    note, *others = said.err.splitlines()
    up, down = f"`{program} lab.up --hosts gpu01,gpu02`", f"`{program} lab.down`"
    assert note == (
        f"inventory/lab.yml names hosts of a lab that does not run: {up} boots them again, and {down} removes the file"
    )
    assert verb in ("hosts", "audit") or "gpu01" in others[-1]


@pytest.mark.parametrize("line", ["--help", "--list", "--help plan", "lab.status", "--complete-words plan gpu"])
def test_who_reaches_no_host_is_not_told(checkout: Checkout, line: str) -> None:
    assert "lab.yml" not in checkout.says(line).err
