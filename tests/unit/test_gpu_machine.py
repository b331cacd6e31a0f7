"""``make gpu``: its outcome without a GPU, and the output of a driver's programs with made-up identifiers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from filelock import FileLock

from tests.gpu.__main__ import QUERIES, VERBS, Outcome, nothing_left, query, unpack
from tests.places import PROJECT

REPORT = PROJECT / "tests/fixtures/nvidia-smi/b200-580.105.08.xml"
UUID, SERIAL, PDI = "f7720e4a-d9b3-43c1-9c3e-580010508b20", "1655990580200", "0x0001655990580200"
#: an nvidia-smi that prints the report, and for all else a line with what is secret of the card
PROGRAM = f"""#!/bin/sh
[ "$*" != '-q -x' ] || exec cat {REPORT}
echo "Serial Number : {SERIAL}, GPU-{UUID}, 1{SERIAL}"
"""


@pytest.mark.timeout(600)
def test_without_a_gpu_every_step_ends_and_the_outcome_is_no_gpu(tmp_path: Path) -> None:
    (tmp_path / "back").mkdir()
    command = (sys.executable, "-m", "tests.gpu", "--kit", tmp_path / "none", "--out", tmp_path / "out")
    env = {**os.environ, "OUT": str(tmp_path / "back")}
    with FileLock("/tmp/hostwright-gpu-test.lock"):  # noqa: S108 - proofs of another run on this machine refuse these
        ran = subprocess.run(command, cwd=PROJECT, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1].startswith("no GPU: ")
    (folder,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir())
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["outcome"] == "no GPU"
    assert [step["file"] for step in manifest["steps"]] == [*QUERIES, *VERBS]
    assert {path.name for path in (tmp_path / "back").iterdir()} == {f"{folder.name}.tar.gz"}
    if os.geteuid() == 0:  # who runs the tests may not become root
        (host,) = json.loads((folder / "hostwright-prove.json").read_text())["hosts"]
        outcomes = {one["proof"]: one["outcome"] for one in host["results"]}
        assert (outcomes["base.memory"], outcomes["driver.placement"]) == ("passed", "no GPU")
        assert json.loads((folder / "facts-machine.last.json").read_text())["answers"]


def test_what_nvidia_smi_prints_is_kept_with_made_up_identifiers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nvidia-smi").write_text(PROGRAM)
    (tmp_path / "nvidia-smi").chmod(0o755)
    outcome = Outcome(tmp_path / "out")
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert query(outcome, env) == (["NVIDIA B200"], "580.105.08")
    texts = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    report, listed = texts["nvidia-smi-q-x.xml"], texts["nvidia-smi-L.txt"]
    assert [name for name, text in texts.items() if UUID in text or PDI in text or f" {SERIAL}" in text] == []
    serial, uuid = outcome.made_up[SERIAL], outcome.made_up[UUID]
    assert listed == f"Serial Number : {serial}, GPU-{uuid}, 1{SERIAL}\n"
    made_up = report.replace(serial, SERIAL).replace(uuid, UUID).replace(outcome.made_up[PDI], PDI)
    assert made_up == REPORT.read_text()


def test_a_step_that_does_not_end_is_cut_off_and_keeps_what_it_printed(tmp_path: Path) -> None:
    outcome = Outcome(tmp_path / "out")
    outcome.run("slow.txt", ("sh", "-c", "echo begun; exec sleep 60"), 1.0)
    outcome.run("none.txt", ("/no/such/program",), 1.0)
    assert [(row["status"], str(row["note"])[:9]) for row in outcome.rows] == [(None, "cut off a"), (None, "cannot be")]
    assert (tmp_path / "out" / "slow.txt").read_text() == "begun\n"


def test_jobs_of_its_own_runs_are_ended_and_removed_and_nobody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = tmp_path / "made" / "jobs"
    monkeypatch.setattr("tests.gpu.__main__.JOBS", (str(jobs),))
    monkeypatch.setattr("tests.gpu.__main__.MADE", (jobs, tmp_path / "new" / "run.lock"))
    (jobs / "other-1").mkdir(parents=True)
    with nothing_left(tmp_path / "state"):
        for made in (tmp_path / "state" / "runs" / "own", jobs / "own-1", tmp_path / "new"):
            made.mkdir(parents=True)
        (tmp_path / "new" / "run.lock").touch()
        own, other = (
            subprocess.Popen(("sleep", "60"), env={"PATH": os.environ["PATH"], "JOB": str(jobs / job)})
            for job in ("own-1", "other-1")
        )
    try:
        assert (own.wait(10), other.poll()) == (-signal.SIGKILL, None)
    finally:
        other.kill()
        other.wait()
    assert [path.name for path in jobs.iterdir()] == ["other-1"]
    assert not (tmp_path / "new").exists()


def test_only_the_wheels_that_suit_this_python_are_unpacked(tmp_path: Path) -> None:
    minor = sys.version_info[1]
    for tag in ("py3-none-any", f"cp3{minor}-cp3{minor}-x", "cp39-abi3-x", "cp399-abi3-x", "cp399-cp399-x"):
        with ZipFile(tmp_path / f"some-1-{tag}.whl", "w") as wheel:
            wheel.writestr(tag, "")
    unpack(tmp_path, tmp_path / "site")
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == sorted(
        ["py3-none-any", f"cp3{minor}-cp3{minor}-x", "cp39-abi3-x"]
    )
