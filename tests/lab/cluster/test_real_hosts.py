"""Lab hosts with the whole stack on two workers, one of which is killed during a job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.config import Lab, Machine
from lab.records import find_machine
from tests.lab.cluster import certificates
from tests.lab.cluster.cluster import Cluster, cluster_of
from tests.lab.cluster.hosts import until
from tests.lab.cluster.running import Typed, of_host, records
from tests.lab.conftest import FrontDoor, on
from tests.places import PROJECT

INVOKE = Path(sys.executable).with_name("invoke")
JOBS = "/var/lib/hostwright/jobs"
LONG_S = 600.0  #: timeout of a job that takes minutes, on a machine under load
HOSTS = ("gpu01", "gpu02")

pytestmark = pytest.mark.long


@pytest.fixture
def bare_environments(provisioned: FrontDoor, lab: Lab) -> Iterator[FrontDoor]:
    """Both hosts without their virtual environment, which takes pip half a minute."""
    for host in HOSTS:
        on(find_machine(lab, host), "rm -rf /opt/tensorflow-2.9 /opt/hostwright/venvs")
    yield provisioned
    assert provisioned("provision", "--hosts", ",".join(HOSTS)).returncode == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    authority = certificates.make_authority(tmp_path / "ca")
    with cluster_of(tmp_path / "dask", "w1", "w2", protocol="tls", **certificates.environment(authority)) as started:
        yield started


def jobs_of(machine: Machine) -> set[str]:
    return {name for name in on(machine, f"ls {JOBS}").split() if "-tensorflow-" in name}


def ends(machine: Machine, job: str) -> list[list[str]]:
    """Return (step, status) of each end in a job's log."""
    nonce = json.loads(on(machine, f"cat {JOBS}/{job}/job.json"))["nonce"]
    lines = on(machine, f"cat {JOBS}/{job}/log").splitlines()
    return [line.split()[2:4] for line in lines if line.startswith(f"{nonce} end ")]


def test_a_worker_is_killed_in_the_middle_of_a_job_and_the_run_ends_green(
    bare_environments: FrontDoor, lab: Lab, cluster: Cluster, tmp_path: Path
):
    machines = {host: find_machine(lab, host) for host in HOSTS}
    before = {host: jobs_of(machine) for host, machine in machines.items()}
    state = tmp_path / "state"
    words = ("--hosts", ",".join(HOSTS), *cluster.options)
    run = Typed(
        subprocess.Popen(
            [str(INVOKE), "provision", "--inventory", str(lab.inventory.parent), *words],
            cwd=PROJECT,
            env={**cluster.environ(), "HOSTWRIGHT_STATE": str(state), "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    )
    for host, machine in machines.items():
        assert until(lambda host=host, machine=machine: jobs_of(machine) - before[host], LONG_S), run.out  # type: ignore[misc]
        (job,) = jobs_of(machine) - before[host]
        on(machine, f"until [ -s {JOBS}/{job}/pid ]; do sleep 0.1; done")
    had = {
        record["host"]: record["witness"]["worker"]
        for record in records(state)
        if record["kind"] == "role started" and record["role"] == "tensorflow"
    }
    killed = next(name for name in ("w1", "w2") if cluster.address_of(name) in had.values())
    lost = [host for host, worker in had.items() if worker == cluster.address_of(killed)]
    cluster.kill(killed)

    assert run.end(LONG_S) == 0, run.out
    assert f"its worker {killed} was lost" in run.out
    for host, machine in machines.items():
        (job,) = jobs_of(machine) - before[host]
        assert ends(machine, job) == [["0", "0"], ["1", "0"], ["2", "0"]]
        kinds = of_host(records(state), host)
        assert ("attached" in kinds) == (host in lost)
        assert (kinds.count("role started"), kinds[-1]) == (kinds.count("role finished"), "host ended")
    again = bare_environments("plan", "--hosts", ",".join(HOSTS))
    assert again.returncode == 0, again.stdout
