"""Secrets reach workers only over TLS, and appear in no log and no stored state of a cluster."""

from __future__ import annotations

import json
import pickle
import stat
from collections.abc import Iterator
from pathlib import Path

import dask
import distributed  # its defaults must be loaded before a test's settings
import pytest

from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.roles.site import Site
from tests.lab.cluster import certificates
from tests.lab.cluster.cluster import Cluster, cluster_of
from tests.lab.cluster.hosts import Hosts, slow_hosts
from tests.lab.cluster.looking import everything, remember
from tests.lab.cluster.running import Run, records, words

TOKEN, PRINTED, BMC = "token-7f3a9c51d2", "printed-4b8e0a77c1", "bmc-not-for-workers-55aa"
NAMES = ("gpu1", "gpu2")
pytestmark = pytest.mark.long
assert distributed.__version__


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificates.make_authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with slow_hosts(tmp_path_factory.mktemp("cluster") / "site", NAMES) as made:
        yield made


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, authority: Path) -> Iterator[Cluster]:
    """A cluster with TLS and debug logs of Dask."""
    folder = tmp_path_factory.mktemp("dask")
    parts = ("", ".core", ".worker", ".scheduler", ".batched", ".comm", ".protocol")
    (folder / "config").mkdir()
    (folder / "config/logging.yaml").write_text(
        json.dumps({"logging": {f"distributed{part}": "debug" for part in parts}})
    )
    variables = {**certificates.environment(authority), "DASK_CONFIG": str(folder / "config")}
    with cluster_of(folder, "w1", "w2", protocol="tls", **variables) as started:
        yield started


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, authority: Path, hosts: Hosts) -> Iterator[Path]:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    hosts.bare()
    with dask.config.set(certificates.settings(authority)):
        yield tmp_path / "state"


def dumped(cluster: Cluster) -> str:
    """The state dumps of the scheduler and its workers, printed and raw."""
    from hostwright.apply.executors.cluster.client import connected

    with connected(cluster.address, "test") as client:
        state = client.run_on_scheduler(everything)
        state += json.dumps(client.get_events(), default=repr)
        for answer in client.run(everything).values():
            state += answer
        client.dump_cluster_state(str(cluster.folder / "dump"), format="yaml")
    return state + (cluster.folder / "dump.yaml").read_text()


@pytest.fixture
def provisioned(cluster: Cluster, hosts: Hosts) -> Run:
    """A run whose role needs a secret, and whose step prints it."""
    hosts.inventory(
        slow_token=TOKEN,
        slow_word=f"the token is {TOKEN}",
        ansible_become_password_command=f"echo {PRINTED}",
        hostwright_bmc_password=BMC,
    )
    hosts.go()
    run = Run(hosts.root, cluster.address)
    assert words(run.wait()) == dict.fromkeys(NAMES, "changed")
    return run


def test_secrets_arrive_and_nobody_on_the_way_has_seen_them(
    provisioned: Run, cluster: Cluster, hosts: Hosts, state: Path
):
    assert TOKEN in hosts.on("gpu1", "cat /var/lib/hostwright/jobs/*/log")  # the step received it
    log = cluster.logs()
    assert "Run out-of-band function 'hear'" in log
    assert "DEBUG" in log
    found = {"logs": log, "state": dumped(cluster)}
    kept = b"".join(path.read_bytes() for path in (cluster.folder / "state").rglob("*") if path.is_file())
    found["files of workers"] = kept.decode("latin-1")
    found["journal"] = "".join(path.read_text() for path in state.rglob("*.jsonl"))
    found["events"] = pickle.dumps(list(provisioned.seen)).decode("latin-1")
    for place, text in found.items():
        assert text, place
        for secret in (TOKEN, PRINTED, BMC):
            assert secret not in text, place
    assert any("***" in json.dumps(record) for record in records(state))
    assert {stat.S_IMODE(path.stat().st_mode) for path in (cluster.folder / "state").iterdir()} == {0o700}


def test_the_test_would_find_them(cluster: Cluster):
    from hostwright.apply.executors.cluster.client import connected

    with connected(cluster.address, "test") as client:
        client.run(remember, f"found-{TOKEN}")
    assert f"found-{TOKEN}" in dumped(cluster)


def test_without_tls_the_same_run_is_refused_and_nothing_is_sent(hosts: Hosts, tmp_path: Path, state: Path):
    hosts.inventory(slow_token=TOKEN)
    with cluster_of(tmp_path / "dask", "w1") as plain:
        fleet = Fleet.load(site=Site(hosts.root))
        with pytest.raises(InputError) as refused:
            fleet.provision(fleet.targets("all"), Request(executor="dask", scheduler=plain.address))
        assert "gpu1 needs slow_token, and secrets are sent to workers only over TLS" in str(refused.value)
        assert not (state / "runs").exists()
        assert hosts.steps("gpu1") == []

        hosts.inventory()
        hosts.go()
        assert words(Run(hosts.root, plain.address).wait()) == dict.fromkeys(NAMES, "changed")


def test_nobody_without_a_certificate_of_the_authority_may_send_work(cluster: Cluster, hosts: Hosts, tmp_path: Path):
    hosts.inventory()
    other = certificates.make_authority(tmp_path / "other")
    fleet = Fleet.load(site=Site(hosts.root))
    with dask.config.set(certificates.settings(other)), pytest.raises(InputError) as refused:
        fleet.provision(fleet.targets("all"), Request(executor="dask", scheduler=cluster.address))
    assert "is not trusted" in str(refused.value)
    assert refused.value.exit_status == 2
    assert hosts.steps("gpu1") == []
