"""Problems of clusters from public reports, with the correct result; each test names its report."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed
import pytest

from hostwright import __version__
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.roles.site import Site
from tests.lab.cluster import certificates
from tests.lab.cluster.cluster import Cluster, cluster_of
from tests.lab.cluster.hosts import Hosts, until
from tests.lab.cluster.running import Run, Typed, of_host, records, typed, words
from tests.places import PROJECT

NAMES = ("gpu1", "gpu2", "gpu3", "gpu4")
#: start-up programs of a worker's Python: one sets another version, one removes it
OTHER = "import hostwright\nhostwright.__version__ = '0.0.1'\n"
NONE = "import sys\nsys.modules['hostwright'] = None\n"
pytestmark = pytest.mark.long
assert distributed.__version__  # its defaults must be loaded before a test's settings


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler without workers, which gives up a worker after five seconds without contact."""
    with cluster_of(tmp_path / "dask", DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL="5s") as cluster:
        yield cluster


def shimmed(folder: Path, program: str) -> dict[str, str]:
    """Return the environment of a worker that first runs this program."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(program)
    return {"PYTHONPATH": f"{folder}:{PROJECT}"}


def refused(hosts: Hosts, scheduler: str) -> str:
    fleet = Fleet.load(site=Site(hosts.root))
    with pytest.raises(InputError) as caught:
        fleet.provision(fleet.targets("all"), Request(executor="dask", scheduler=scheduler))
    assert caught.value.exit_status == 2
    return str(caught.value)


def test_all_workers_that_do_not_fit_are_told_at_once(hosts: Hosts, bare: Cluster, state: Path, tmp_path: Path):
    """distributed #1279 (only the first mismatch is reported), #3379 (the check fails on another version)."""
    bare.start_worker("other", **shimmed(tmp_path / "other", OTHER))
    bare.start_worker("none", **shimmed(tmp_path / "none", NONE))
    bare.start_worker("fits")
    sentences = refused(hosts, bare.address).splitlines()
    assert sorted(re.sub(r"tcp://\S+:\d+", "W", sentence) for sentence in sentences) == [
        f"the worker W cannot be used: it has Hostwright 0.0.1, but this machine has {__version__}; install the same "
        "version there",
        "the worker W cannot be used: it has no Hostwright, or another version; install the same version there",
    ]
    assert bare.address_of("fits") not in "".join(sentences)
    assert not (state / "runs").exists()
    assert hosts.steps("gpu1") == []


def test_a_worker_that_joins_later_and_does_not_fit_is_given_no_host(
    hosts: Hosts, bare: Cluster, state: Path, tmp_path: Path
):
    bare.start_worker("w1", threads=1)
    run = Run(hosts.root, bare.address)
    hosts.wait_until_begun("gpu1")
    bare.start_worker("other", **shimmed(tmp_path / "other", OTHER))
    bare.start_worker("w2", threads=2)
    assert until(lambda: run.said("receives no hosts: it has Hostwright 0.0.1"))
    hosts.wait_until_begun("gpu2", "gpu3")
    hosts.go()
    assert words(run.wait()) == dict.fromkeys(NAMES, "changed")
    assert bare.address_of("other") not in {worker for host in NAMES for worker in run.workers_of(host)}


def test_no_more_hosts_begin_than_workers_have_threads_and_a_lost_worker_costs_only_its_own(
    hosts: Hosts, bare: Cluster, state: Path
):
    """distributed #5234: tasks that only wait at a dying worker are suspected as well."""
    bare.start_worker("w1", threads=1)
    run = Run(hosts.root, bare.address)
    hosts.wait_until_begun("gpu1")
    assert not [host for host in NAMES[1:] if hosts.steps(host)]
    bare.start_worker("w2", threads=1)
    hosts.wait_until_begun("gpu2")
    bare.kill("w1")
    hosts.go()
    assert words(run.wait()) == dict.fromkeys(NAMES, "changed")
    assert [host for host in NAMES if len(run.workers_of(host)) > 1] == ["gpu1"]
    assert all(hosts.steps(host) == ["first", "second"] for host in NAMES)


def test_each_host_is_worked_on_once_however_unevenly_they_take(hosts: Hosts, bare: Cluster, state: Path):
    """distributed #1305 and #847: stolen tasks ran twice."""
    bare.start_worker("w1", threads=2)
    bare.start_worker("w2", threads=2)
    run = Run(hosts.root, bare.address)
    hosts.wait_until_begun("gpu1")
    hosts.go("gpu2", "gpu3", "gpu4")
    assert until(lambda: sum(record["kind"] == "host ended" for record in records(state)) == 3)
    hosts.go()
    assert words(run.wait()) == dict.fromkeys(NAMES, "changed")
    attempts = {(record["host"], record["witness"]["attempt"]) for record in records(state) if "witness" in record}
    assert Counter(host for host, _ in attempts) == dict.fromkeys(NAMES, 1)


def test_a_worker_that_hung_and_comes_back_is_heard_no_more(hosts: Hosts, bare: Cluster, state: Path):
    """distributed #5103: a given-up worker continues and reconnects; receptor #711: "running" forever."""
    bare.start_worker("w1")
    run = Run(hosts.root, bare.address, hosts="gpu1")
    hosts.wait_until_begun("gpu1")
    bare.start_worker("w2")
    hung = bare.workers["w1"]
    os.killpg(hung.pid, signal.SIGSTOP)
    assert until(lambda: len(run.workers_of("gpu1")) == 2)
    os.killpg(hung.pid, signal.SIGCONT)
    hosts.go()
    ended = run.wait()
    assert words(ended) == {"gpu1": "changed"}
    assert hosts.once("gpu1")
    journal = records(state)
    assert of_host(journal, "gpu1").count("host ended") == 1
    last = next(record["witness"]["attempt"] for record in journal if record["kind"] == "host ended")
    order = [record["witness"]["attempt"] for record in journal if "witness" in record]
    # none of the first attempt after the second began
    assert order == sorted(order, key=lambda attempt: attempt == last)


def test_workers_let_go_of_hosts_when_the_operators_machine_is_gone(hosts: Hosts, bare: Cluster, state: Path):
    """awx #11181: the controller has ended, and the execution node continues."""
    bare.start_worker("w1")
    dying = Typed(typed(hosts.root, state, "provision", "--hosts", "gpu1", *bare.options))
    hosts.wait_until_begun("gpu1")
    assert "through" in hosts.on("gpu1", "cat /run/hostwright/run.json")
    dying.process.kill()
    dying.end()
    assert until(lambda: not hosts.on("gpu1", "cat /run/hostwright/run.json 2>/dev/null"))
    assert hosts.steps("gpu1") == ["first"]  # the job continues
    hosts.go()
    assert until(lambda: hosts.steps("gpu1") == ["first", "second"])


def test_a_scheduler_with_tls_is_not_one_without(hosts: Hosts, state: Path, tmp_path: Path):
    """distributed #4812 and similar: an address without TLS for a scheduler with TLS."""
    authority = certificates.make_authority(tmp_path / "ca")
    with cluster_of(tmp_path / "tls", protocol="tls", **certificates.environment(authority)) as cluster:
        sentence = refused(hosts, cluster.address.replace("tls", "tcp"))
        assert "\n" not in sentence
        assert "for a scheduler with TLS, use tls://" in sentence
        with dask.config.set(certificates.settings(authority)):
            assert refused(hosts, cluster.address).startswith(f"--scheduler: {cluster.address} has no worker")


def test_the_rollouts_limits_are_those_of_any_run(hosts: Hosts, bare: Cluster, state: Path):
    hosts.inventory(slow_word="x; exit 3")
    bare.start_worker("w1")
    run = Run(hosts.root, bare.address, request=Request(canary="1"))
    ended = run.wait()
    assert ended.status == 1
    assert ended.results.stopped_because == "a canary failed: gpu1"
    assert ended.results.untouched == NAMES[1:]
    (error,) = ended.results.errors
    assert "the step ended with status 3" in error.sentence
    assert error.examination is not None
    assert [hosts.jobs(host) for host in NAMES[1:]] == [[], [], []]


def test_what_was_shown_is_applied_or_nothing(hosts: Hosts, bare: Cluster, state: Path):
    bare.start_worker("w1")
    fleet = Fleet.load(site=Site(hosts.root))
    targets = fleet.targets("gpu1,gpu2")
    saved = {planned.host: planned.plan for planned in fleet.plan(targets).values}
    hosts.on("gpu2", "echo done >/mnt/done-second")
    hosts.go()
    ended = fleet.provision(targets, Request(executor="dask", scheduler=bare.address), saved=saved)
    assert words(ended) == {
        "gpu1": "changed",
        "gpu2": "the host changed since this plan was made; nothing was done; plan again",
    }
    assert hosts.jobs("gpu2") == []
