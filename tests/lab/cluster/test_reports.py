"""Further public reports about clusters, each written with the correct result before it ran here."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import Client

from hostwright.apply.executors.cluster import cluster as crews
from hostwright.common.errors import ExecutorLost
from tests.lab.cluster.cluster import Cluster, cluster_of
from tests.lab.cluster.hosts import Hosts, until
from tests.lab.cluster.running import Run, Typed, records, typed

NAMES = ("gpu1", "gpu2", "gpu3", "gpu4")
#: internal terms of Dask, which must not appear in messages
FOREIGN = re.compile(r"Traceback|CancelledError|KilledWorker|CommClosedError|distributed\.|tornado|StreamClosed")
#: a role that ends a worker's process, on one host
DEADLY = '''    if v.word == "die" and os.environ.get("IN_A_WORKER"):
        os._exit(9)
    yield Done("first"'''

pytestmark = pytest.mark.long


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without workers."""
    with cluster_of(tmp_path / "dask", IN_A_WORKER="yes") as cluster:
        yield cluster


def test_a_worker_that_is_told_to_end(hosts: Hosts, bare: Cluster, state: Path):
    """distributed #1352: workers that are downscaled (SIGTERM) fail jobs with CancelledError or KilledWorker."""
    bare.start_worker("w1")
    run = Typed(typed(hosts.root, state, "provision", "--hosts", "gpu1,gpu2", *bare.options))
    hosts.wait_until_begun("gpu1", "gpu2")
    bare.start_worker("w2")
    bare.kill("w1", signal.SIGTERM)
    run.wait_for("the worker w1 was lost; w2 continues")
    hosts.go()
    assert run.end() == 0, run.out
    assert not FOREIGN.search(run.out), run.out
    assert hosts.once("gpu1", "gpu2")


def test_a_host_that_ends_every_worker_which_takes_it(hosts: Hosts, bare: Cluster, state: Path):
    """distributed #301: a task that ends its worker's process hangs forever.

    Other hosts may be given up as well, but none of their work is lost.
    """
    role = hosts.root / "roles/slow/__init__.py"
    before = role.read_text()
    role.write_text("import os\n" + before.replace('    yield Done("first"', DEADLY, 1))
    bare.start_worker("w1", threads=2, words=("--nanny",))
    bare.start_worker("w2", threads=2, words=("--nanny",))
    deadly = hosts.root / "inventory/host_vars/gpu1.yml"
    deadly.parent.mkdir()
    deadly.write_text("slow_word: die\n")
    hosts.go()
    try:
        run = Typed(typed(hosts.root, state, "provision", "--hosts", "all", *bare.options))
        assert run.end(600) == 1, run.out
        ended = {record["host"]: record for record in records(state) if record["kind"] == "host ended"}
        assert set(ended) == set(NAMES)
        failed = [host for host in NAMES if ended[host]["result"] == "failed"]
        assert "gpu1" in failed
        assert all("workers were lost while they worked on this host" in ended[host]["sentence"] for host in failed)
        assert not FOREIGN.search(run.out), run.out
        deadly.write_text("slow_word: live\n")
        resumed = Typed(typed(hosts.root, state, "provision", "--hosts", "all", *bare.options))
        assert resumed.end() == 0, resumed.out
    finally:
        role.write_text(before)
        deadly.unlink()
        deadly.parent.rmdir()
    assert hosts.once(*NAMES)


def test_no_worker_is_left(hosts: Hosts, bare: Cluster, state: Path, monkeypatch: pytest.MonkeyPatch):
    """dask #380: a node disappears, and the computation hangs forever."""
    monkeypatch.setattr(crews, "ALONE_S", 12.0)
    monkeypatch.setattr(crews, "is_open", bare.address.startswith)  # as if other machines could reach this scheduler
    bare.start_worker("w1", threads=1)
    run = Run(hosts.root, bare.address)
    hosts.wait_until_begun("gpu1")
    bare.kill("w1")
    assert until(lambda: run.said("no worker is left"))
    assert run.said(f"anyone who can connect to {bare.address} can use the workers' logins to all hosts")
    ended = run.wait()
    assert ended.status == 1
    assert ended.results.stopped_because == f"no worker is left at {bare.address} for 12 s"
    (error,) = ended.results.errors
    assert isinstance(error, ExecutorLost)
    assert "provision --resume" in error.sentence
    assert ended.results.untouched == NAMES[1:]


def test_the_scheduler_is_lost_and_comes_back(hosts: Hosts, bare: Cluster, state: Path):
    """distributed #5666, #8690 (a bare CancelledError) and #403 (a scheduler restarted at the same address)."""
    bare.start_worker("w1", words=("--no-nanny", "--death-timeout", "5"))
    run = Typed(typed(hosts.root, state, "provision", "--hosts", "gpu1,gpu2", *bare.options))
    hosts.wait_until_begun("gpu1", "gpu2")
    assert bare.scheduler is not None
    bare.scheduler.kill()
    bare.scheduler.wait()
    assert run.end() == 1, run.out
    assert f"the connection to the scheduler {bare.address} was lost" in run.out
    assert "provision --resume" in run.out
    assert not FOREIGN.search(run.out), run.out
    assert hosts.steps("gpu1") == ["first"]

    refused = Typed(typed(hosts.root, state, "provision", "--resume"))
    assert refused.end() == 2
    assert f"no scheduler answers at {bare.address}" in refused.out
    bare.stop()
    bare.start_scheduler()
    bare.start_worker("w3")
    resumed = Typed(typed(hosts.root, state, "provision", "--resume"))
    resumed.wait_for("re-attaching")
    hosts.go()
    assert resumed.end() == 0, resumed.out
    assert hosts.once("gpu1", "gpu2")


def test_a_worker_that_hangs_holds_up_no_other_and_the_run_can_be_ended(hosts: Hosts, bare: Cluster, state: Path):
    """awx #10737: a job was assigned to a node that does not respond."""
    bare.start_worker("w1", threads=1)
    run = Typed(typed(hosts.root, state, "provision", "--hosts", "all", *bare.options))
    hosts.wait_until_begun("gpu1")
    os.killpg(bare.workers["w1"].pid, signal.SIGSTOP)
    bare.start_worker("w2", threads=1)
    hosts.go()
    assert until(lambda: sum(record["kind"] == "host ended" for record in records(state)) == 3), run.out
    run.process.send_signal(signal.SIGINT)
    run.wait_for("starting nothing new")
    run.process.send_signal(signal.SIGINT)
    assert run.end(60) == 130
    assert not FOREIGN.search(run.out), run.out
    assert hosts.once("gpu2", "gpu3", "gpu4")


def test_a_nanny_restarts_the_only_worker(hosts: Hosts, bare: Cluster, state: Path):
    """distributed #4221: a worker that uses too much memory is restarted in place."""
    bare.start_worker("w1", words=("--nanny",))
    run = Typed(typed(hosts.root, state, "provision", "--hosts", "gpu1,gpu2", *bare.options))
    hosts.wait_until_begun("gpu1", "gpu2")
    with Client(bare.address, set_as_default=False) as client:
        (worker,) = client.run(os.getpid).values()
    os.kill(worker, signal.SIGKILL)
    run.wait_for("was lost")
    hosts.go()
    assert run.end() == 0, run.out
    assert not FOREIGN.search(run.out), run.out
    assert hosts.once("gpu1", "gpu2")
