"""Delivery of a stack's files to hosts of a cluster: each worker serves its own hosts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostwright.apply.delivery.sources.sources import COPIES
from hostwright.apply.events import FROM_HERE, PEER, Delivering
from hostwright.stack.store.artifacts import Store
from tests.lab.cluster.cluster import Cluster, cluster_of
from tests.lab.cluster.hosts import Hosts, until
from tests.lab.cluster.running import Run, records, words

NAMES = tuple(f"gpu{number}" for number in range(1, 9))
CACHE = "/var/cache/hostwright/artifacts"
BIG_BYTES = 1_500_000_000  #: large enough to kill a worker during the transfer

pytestmark = pytest.mark.long


@pytest.fixture
def files(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Directory of the stacks' files, on this machine and on workers."""
    monkeypatch.setenv("HOSTWRIGHT_ARTIFACTS", str(tmp_path / "files"))
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@pytest.fixture
def cluster(tmp_path: Path, files: Path) -> Iterator[Cluster]:
    with cluster_of(tmp_path / "dask", "w1", "w2", HOSTWRIGHT_ARTIFACTS=str(files)) as started:
        yield started


def pin(hosts: Hosts, file: Path) -> str:
    """Add this file to the role of all hosts and to the stacks' files; return its SHA-256."""
    with file.open("rb") as opened:
        sha256 = hashlib.file_digest(opened, "sha256").hexdigest()
    place = Store.default().path(sha256, file.name)
    place.parent.mkdir(parents=True)
    file = file.rename(place)
    hosts.stack(big={"file": file.name, "sha256": sha256, "size": file.stat().st_size})
    # not an address of a worker, so it is ignored
    hosts.inventory(slow_file="big", hostwright_files_address="192.0.2.1")
    return sha256


def test_each_worker_serves_its_own_hosts_and_those_serve_each_other(hosts: Hosts, cluster: Cluster, files: Path):
    (files / "big.bin").write_bytes(os.urandom(3_000_000))
    pin(hosts, files / "big.bin")
    cluster.start_worker("w3", threads=8)
    cluster.kill("w2")
    hosts.go()
    run = Run(hosts.root, cluster.address)
    assert words(run.wait()) == dict.fromkeys(NAMES, "changed")
    worker = {host: run.workers_of(host)[0] for host in NAMES}
    assert len(set(worker.values())) == 2
    came = {event.host: event.sent for event in run.seen if isinstance(event, Delivering) and event.sent}
    assert {host: sum(sent.values()) for host, sent in came.items()} == dict.fromkeys(NAMES, 3_000_000)
    for place in set(worker.values()):
        copies = [host for host, sent in came.items() if worker[host] == place and FROM_HERE in sent]
        assert len(copies) <= COPIES
    others = {(host, source.removeprefix(PEER)) for host, sent in came.items() for source in sent if PEER in source}
    assert all(worker[host] == worker[other] for host, other in others)
    assert not run.said("files are sent over SSH")


def test_a_worker_that_is_killed_while_a_host_fetches_from_it_is_continued_by_another(
    hosts: Hosts, cluster: Cluster, files: Path, state: Path
):
    with (files / "big.bin").open("wb") as file:
        file.truncate(BIG_BYTES)
    sha256 = pin(hosts, files / "big.bin")
    run = Run(hosts.root, cluster.address, hosts="gpu1")
    assert until(lambda: any(isinstance(event, Delivering) and event.done_bytes for event in [*run.seen]))
    (killed,) = run.workers_of("gpu1")
    cluster.kill("w1" if killed == cluster.address_of("w1") else "w2")
    hosts.go()
    assert words(run.wait()) == {"gpu1": "changed"}
    assert len(run.workers_of("gpu1")) == 2
    (whole,) = [record for record in records(state) if record["kind"] == "delivering"]
    assert set(whole["sent"]) == {FROM_HERE}
    assert 0 < whole["sent"][FROM_HERE] < BIG_BYTES  # bytes from the first worker were not sent again
    assert hosts.on("gpu1", f"sha256sum {CACHE}/{sha256}/big.bin").split()[0] == sha256
    assert hosts.once("gpu1")
