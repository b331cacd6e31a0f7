"""A run distributed over workers of a real Dask cluster: separate processes on this machine, real sshd, real jobs."""

from __future__ import annotations

import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.apply.executors.cluster.reporting import kept
from hostwright.apply.journal.reading import Runs
from tests.lab.cluster.cluster import Cluster, cluster_of
from tests.lab.cluster.hosts import Hosts, until
from tests.lab.cluster.running import Run, Typed, of_host, records, typed, words

NAMES = ("gpu1", "gpu2", "gpu3", "gpu4")
WHOLE = ["observed", "observed", "role started", "role finished", "observed", "host ended"]

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_of(tmp_path_factory.mktemp("dask"), "w1", "w2") as cluster:
        yield cluster


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """The cluster with both workers, restored after earlier tests."""
    for name in ("w1", "w2"):
        if name not in started.workers:
            started.start_worker(name)
    return started


def test_workers_work_on_the_hosts_and_the_journal_is_here(hosts: Hosts, cluster: Cluster, state: Path):
    hosts.go()
    run = Run(hosts.root, cluster.address)
    ended = run.wait()
    assert (ended.status, words(ended)) == (0, dict.fromkeys(NAMES, "changed"))
    assert {worker for host in NAMES for worker in run.workers_of(host)} == {
        cluster.address_of("w1"),
        cluster.address_of("w2"),
    }
    journal = records(state)
    assert {host: of_host(journal, host) for host in NAMES} == dict.fromkeys(NAMES, WHOLE)
    assert journal[-1]["kind"] == "run ended"
    assert hosts.once(*NAMES)
    loaded = Runs(state).load(ended.run)
    assert {len(host.facts) for host in loaded.hosts} == {2}
    (site,) = (cluster.folder / "state/sites").iterdir()
    assert stat.S_IMODE(site.stat().st_mode) == 0o700
    assert list((cluster.folder / "state/attempts").iterdir()) == []
    again = Run(hosts.root, cluster.address).wait()
    assert (again.status, words(again)) == (0, dict.fromkeys(NAMES, "as desired"))
    assert (state / "stacks").is_dir()  # stacks of verified hosts, for a rollback from this machine


def test_a_worker_that_is_killed_in_the_middle_loses_nothing(hosts: Hosts, cluster: Cluster, state: Path):
    run = Run(hosts.root, cluster.address)
    hosts.wait_until_begun(*NAMES)
    killed = cluster.address_of("w1")
    had = [host for host in NAMES if run.workers_of(host) == [killed]]
    assert had
    cluster.kill("w1")
    assert until(lambda: all(len(run.workers_of(host)) == 2 for host in had))
    hosts.go()
    ended = run.wait()
    assert (ended.status, words(ended)) == (0, dict.fromkeys(NAMES, "changed"))
    assert hosts.once(*NAMES)
    journal = records(state)
    followed = ["observed", "observed", "role started", "note", "attached", "role finished", "observed", "host ended"]
    assert {host: of_host(journal, host) for host in NAMES} == {
        host: followed if host in had else WHOLE for host in NAMES
    }
    assert kept(ended.run, {}, cluster.folder / "state") == []
    (role,) = {role.status for host in Runs(state).load(ended.run).hosts for role in host.roles if role.attached}
    assert role == 0
    assert run.said("the worker w1 was lost; w2 continues")


def test_a_host_that_has_ended_is_not_touched_again_when_its_worker_dies(hosts: Hosts, cluster: Cluster, state: Path):
    run = Run(hosts.root, cluster.address, hosts="gpu1,gpu2")
    hosts.wait_until_begun("gpu1", "gpu2")
    (first,) = run.workers_of("gpu1")
    hosts.go("gpu1")
    assert until(lambda: any(record["kind"] == "host ended" for record in records(state)))
    name = "w1" if first == cluster.address_of("w1") else "w2"
    cluster.kill(name)
    hosts.go("gpu2")
    ended = run.wait()
    assert words(ended) == {"gpu1": "changed", "gpu2": "changed"}
    assert run.workers_of("gpu1") == [first]
    assert of_host(records(state), "gpu1") == WHOLE
    assert len(hosts.jobs("gpu1")) == 1


def test_the_operators_machine_dies_and_resume_takes_over_without_a_gap(hosts: Hosts, cluster: Cluster, state: Path):
    dying = Typed(typed(hosts.root, state, "provision", "--hosts", "all", *cluster.options))
    hosts.wait_until_begun(*NAMES)
    hosts.go("gpu1")
    assert until(lambda: any(record["kind"] == "host ended" for record in records(state)))
    run = max((state / "runs").iterdir()).name
    dying.process.send_signal(signal.SIGSTOP)  # it receives nothing, but still exists
    hosts.go("gpu2")
    assert until(lambda: "changed" in kept_of(cluster, run, "gpu2"))
    dying.process.kill()
    dying.end()
    assert records(state, run)[-1]["kind"] != "run ended"

    resuming = Typed(typed(hosts.root, state, "provision", "--resume"))
    resuming.wait_for("re-attaching")
    assert of_host(records(state, run), "gpu2") == WHOLE
    hosts.go()
    assert resuming.end() == 0, resuming.out
    assert "resuming" in resuming.out
    last = records(state)
    assert [record["hosts"] for record in last if record["kind"] == "run began"] == [["gpu3", "gpu4"]]
    assert last[0]["options"]["executor"] == "dask"
    assert hosts.once(*NAMES)
    merged = [
        (record["witness"]["attempt"], record["witness"]["number"])
        for record in records(state, run)
        if "witness" in record
    ]
    assert len(merged) == len(set(merged))


def kept_of(cluster: Cluster, run: str, host: str) -> list[str]:
    """Return a host's result in the workers' records of this run."""
    messages = [message for message in kept(run, {}, cluster.folder / "state") if message.host == host]
    return [getattr(getattr(message.body, "outcome", None), "word", "") for message in messages]


def test_ctrl_c_once_lets_jobs_end_and_twice_leaves_them(hosts: Hosts, cluster: Cluster, state: Path):
    run = Typed(typed(hosts.root, state, "provision", "--hosts", "gpu1,gpu2", "--batch", "1", *cluster.options))
    hosts.wait_until_begun("gpu1")
    run.process.send_signal(signal.SIGINT)
    run.wait_for("starting nothing new")
    assert run.process.poll() is None
    hosts.go("gpu1")
    assert run.end() == 1
    assert "gpu2" in run.out
    assert hosts.steps("gpu1") == ["first", "second"]
    assert hosts.jobs("gpu2") == []
    assert "Traceback" not in run.out

    run = Typed(typed(hosts.root, state, "provision", "--hosts", "gpu2", *cluster.options))
    hosts.wait_until_begun("gpu2")
    run.process.send_signal(signal.SIGINT)
    run.wait_for("starting nothing new")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert "provision --resume" in run.out
    assert "Traceback" not in run.out
    assert until(lambda: not hosts.on("gpu2", "cat /run/hostwright/run.json 2>/dev/null"))  # the lock is released
    hosts.go()
    resumed = Typed(typed(hosts.root, state, "provision", "--resume"))
    assert resumed.end() == 0, resumed.out
    assert hosts.once("gpu2")
