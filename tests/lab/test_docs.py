"""Every command line of the documents runs in a real shell, in a copy of the checkout, on provisioned hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hostwright.stack.store.artifacts import Store
from lab.config import Lab
from lab.records import find_machine
from tests.lab.conftest import FrontDoor, on
from tests.places import PROJECT
from tests.unit.support.documents import NAMES, Command, blocks, commands

#: command → why it does not run here, and what runs it instead. All other commands run.
ELSEWHERE = {
    "make demo": "brings up and takes down the user's own lab; its steps are run by tests/stand_ins and test_provision",
    "make test": "this test is a part of it",
    "make setup": "makes the environment in which this test runs; `make test` begins with it",
    "make unit": "the same tests are a part of `make test`",
    "make bench": "measures for an hour and a half on a quiet machine; tests/unit/benchmarks holds what it decides",
    "make bench CASES=plan HOSTS=1,10": "likewise, for minutes",
    "make docs": "tests/unit/test_docs_site.py builds the site",
    "make dist": "likewise, as `make setup` does",
    "pip install dist/hostwright-*.whl": "tests/unit/test_package.py builds the package, installs it and makes a site",
    "hostwright init ~/fleet": "likewise",
    "python3 -m venv ~/hostwright && . ~/hostwright/bin/activate": "likewise; tests/lab/first_hour types it",
    "cd ~/fleet": "likewise",
    'pip install "$(ls dist/hostwright-*.whl)[dask]"': "tests/unit/test_dependencies.py has what that is",
    "dask scheduler --protocol tls --port 8786": "tests/lab/cluster starts one on a port of its own, with certificates",
    "dask worker tls://gateway1.example.org:8786 --nthreads 32": "likewise",
    "invoke provision --hosts all --executor dask --scheduler tls://gateway1.example.org:8786": "likewise",
    "hostwright check": "tests/unit/cli/test_check.py runs it, on this checkout too: its stacks are others here",
    "hostwright check --json": "likewise",
    'python -m pytest tests/unit -k "link and not loader"': "`make test` runs these tests",
    "sudo .venv/bin/python -m pytest tests/lab/test_provision.py -k second": "`make test` runs this test",
    "invoke lab.up --hosts gpu01,gpu02": "would touch the user's own lab; tests/stand_ins does it in labs of its own",
    "invoke lab.reset --hosts gpu01": "likewise",
    "invoke lab.reset --hosts gpu01,gpu02": "likewise",
    "invoke lab.down": "likewise",
    "invoke lab.up --hosts gpu01,gpu02 --bmc": "likewise; tests/lab/test_bmc.py does it",
    "invoke lab.console --hosts gpu01": "likewise",
    "invoke lab.up --hosts vm01 --kind vm --profile small": "it takes minutes to boot; `make vm` boots one",
    "invoke lab.up --hosts real01 --profile small --distro bookworm --real driver": "`make real` does it",
    "invoke power status --hosts gpu01": "the hosts of this test have no BMC; tests/lab/rebuild/test_bmcs.py runs it",
    "invoke power cycle --hosts gpu01": "likewise",
    "invoke power cycle --hosts gpu01 --boot media --image https://images.example.org/rescue.iso": "likewise",
    "invoke prove --hosts gpu01,gpu02 --quick": "the lab's CUDA computes nothing; test_prove.py sees it fail",
    "invoke prove --hosts gpu01 --proofs base,cuda.memory --html gpu01.html": "likewise",
    "python -m tests.pictures.capture provision": "needs bare hosts and minutes, changes a picture of the documents",
    "python -m tests.pictures.capture rebuild": "likewise",
    "/opt/tensorflow-2.9/bin/pip download --only-binary :all: --no-deps --requirement "
    "/opt/tensorflow-2.9/constraints.txt pip==24.0 --dest wheels": "fetches 0.6 GB, as lab/vendor/wheels.py does",
    "tar -cf wheelhouse-py39.tar -C wheels .": "packs what the command before it fetches",
}
DOCUMENTS = [name for name in NAMES if any(commands(name))]
#: a command in several documents runs only for the first document
DISTINCT = {
    (command.host, command.text): command for name in reversed(DOCUMENTS) for command in reversed([*commands(name)])
}


@pytest.fixture
def checkout(provisioned: FrontDoor, lab: Lab, tmp_path: Path) -> Path:
    """A copy of git's files, with the README's sample inventory for the lab's hosts."""
    assert provisioned("provision", "--hosts", "gpu01,gpu02").returncode == 0  # independent of earlier tests
    on(find_machine(lab, "gpu01"), "rm -f /etc/motd")  # written by the sample role
    copy = tmp_path / "hostwright"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in names:
        if name and (PROJECT / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, copy / name, follow_symlinks=False)  # keeps links to directories
    (copy / ".venv").symlink_to(sys.prefix)
    subprocess.run(["git", "init", "--quiet"], cwd=copy, check=True)
    _lend_lab(lab, copy / "inventory")
    (copy / "inventory/hosts.yml").write_text(next(block.text for block in blocks("README.md") if block.file))
    vendor = tmp_path / "nvidia"
    vendor.mkdir()
    shutil.copy2(next(Path(lab.cache).glob("vendor/small/cudnn-*.tgz")), vendor)
    return copy


def _lend_lab(lab: Lab, inventory: Path) -> None:
    """Add the lab's hosts to an inventory, and replace the users' stack by the lab's."""
    shutil.copy2(lab.inventory, inventory / "lab.yml")
    stacks = inventory / "stacks"
    (stacks / "tensorflow-2.9.yml").rename(stacks / "vendor.yml")
    stack = yaml.safe_load(lab.stack.read_text())
    for name in ("lab", "tensorflow-2.9"):
        (stacks / f"{name}.yml").write_text(yaml.safe_dump({**stack, "extends": "vendor"}))


@pytest.fixture
def run(checkout: Path, lab: Lab) -> Callable[[Command], subprocess.CompletedProcess[str]]:
    """Run a command line in the directory that its document assumes."""
    environment = {
        **os.environ,
        "PATH": f"{checkout / '.venv/bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(checkout),  # so that `hostwright` runs the copy's code, as `invoke` does
        "HOME": str(checkout.parent),
        "HOSTWRIGHT_ARTIFACTS": str(Store.default().root),
        "HOSTWRIGHT_YES": "1",  # no user can confirm
    }

    def in_shell(command: Command) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euc", command.text],
            cwd=checkout,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def on_host(command: Command) -> subprocess.CompletedProcess[str]:
        output = on(find_machine(lab, command.host), command.text)
        return subprocess.CompletedProcess(command.text, 0, output, "")

    return lambda command: on_host(command) if command.host else in_shell(command)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_commands_of_a_document_run(
    document: str, checkout: Path, run: Callable[[Command], subprocess.CompletedProcess[str]]
):
    """In order, each with the documented exit status; samples replace no file of the checkout."""
    for block in blocks(document):
        if block.language == "python" and block.file and not (checkout / block.file).exists():
            (checkout / block.file).parent.mkdir(parents=True, exist_ok=True)
            (checkout / block.file).write_text(block.text)
    for command in commands(document):
        if command in DISTINCT.values() and command.text not in ELSEWHERE:
            done = run(command)
            assert done.returncode == command.status, (
                f"{command}\nstatus {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
            assert "Traceback" not in done.stderr, f"{command}\n{done.stderr}"


def test_what_is_not_run_here_still_stands_in_the_documents():
    written = {command.text for document in DOCUMENTS for command in commands(document)}
    assert set(ELSEWHERE) <= written
