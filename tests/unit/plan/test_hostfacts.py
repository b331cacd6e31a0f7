"""Tests of strict parsing of host facts: cards from the PCI bus, Python versions by their names.

Hosts with several Pythons, as reported by users: one from a PPA beside the distribution's (deadsnakes/issues#150,
#200), one of pyenv or conda first on the user's PATH, and ``python3`` changed by update-alternatives.
"""

import os
import subprocess
from pathlib import Path

import pytest

from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME, os_release, pythons, read_host
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.states.fabric import nvswitches
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids
from tests.unit.support.forks import forks

HGX = "0x10de 0x030200 0x20b2\n" * 8 + "0x10de 0x068000 0x1af1\n" * 6 + "0x10de 0x040300 0x1aef\n"


def facts(**changes: str) -> Facts:
    texts = {
        OS_RELEASE: 'ID=ubuntu\nVERSION_ID="20.04"\nNAME="Ubuntu"\nnonsense\n',
        UNAME: "5.4.0-150-generic x86_64\n",
        PCI: HGX,
        AVX: "",
        PYTHONS: "/usr/bin/python3 3.8\n/usr/bin/python3.8 3.8\n/usr/local/bin/python3.10 3.10\n/x config\n",
        MEMORY: "1056431876\n",
    }
    return Facts({probe: Answer(0, changes.get(probe.script, text)) for probe, text in texts.items()})


def test_an_hgx_host_is_read_as_it_is():
    host = read_host(facts())
    assert (host.distribution, host.version) == ("ubuntu", "20.04")
    assert (host.kernel, host.machine) == ("5.4.0-150-generic", "x86_64")
    assert host.gpus == ((0x10DE, 0x20B2),) * 8
    assert gpu_ids(facts()) == (0x20B2,) * 8, "neither switches nor sound devices are GPUs"
    assert nvswitches(facts()) == 6
    assert host.pythons == ("3.10", "3.8")
    assert host.memory_bytes == 1056431876 * 1024
    assert host.avx


def test_the_first_interpreter_of_a_version_on_the_path_is_taken():
    assert pythons(facts()) == {"3.8": "/usr/bin/python3", "3.10": "/usr/local/bin/python3.10"}


def interpreter(path: Path, leads_to: Path | None = None) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    if leads_to:
        path.symlink_to(leads_to)
    else:
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    return str(path)


def test_interpreters_are_looked_for_without_a_process_for_each_name() -> None:
    assert forks(PYTHONS.script) <= 3


@pytest.mark.parametrize("first", ["root/.pyenv/shims", "opt/conda/bin", "home/ada/.local/bin"])
def test_what_comes_first_on_a_users_path_hides_no_other_interpreter(tmp_path: Path, first: str) -> None:
    usual, local = tmp_path / "usr/bin", tmp_path / "usr/local/bin"
    newest = interpreter(usual / "python3.12")
    interpreter(usual / "python3", Path("python3.12"))
    ppa, built = interpreter(usual / "python3.9"), interpreter(local / "python3.9")
    theirs = interpreter(tmp_path / first / "python3.9")
    script = PYTHONS.script.replace("/usr/", f"{tmp_path}/usr/")
    env = {**os.environ, "PATH": f"{tmp_path / first}:/nowhere::{usual}:/bin"}
    done = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, text=True, check=True)
    rows = [line.split(" ") for line in done.stdout.splitlines() if line.startswith(str(tmp_path))]
    assert {tuple(row) for row in rows} == {
        (f"{usual}/python3", "3.12"), (newest, "3.12"), (theirs, "3.9"), (ppa, "3.9"), (built, "3.9"),
    }  # fmt: skip


def test_a_sentence_names_each_interpreter_with_its_path():
    assert read_host(facts()).interpreters == ("3.8 (/usr/bin/python3)", "3.10 (/usr/local/bin/python3.10)")


def test_lines_without_a_sign_are_passed_over():
    assert "nonsense" not in os_release(facts())


def test_a_host_that_says_nothing_is_unknown_not_a_crash():
    host = read_host(Facts({probe: Answer(1, "") for probe in (OS_RELEASE, UNAME, PCI, AVX, PYTHONS, MEMORY)}))
    assert (host.distribution, host.gpus, host.pythons, host.memory_bytes) == ("unknown", (), (), None)
