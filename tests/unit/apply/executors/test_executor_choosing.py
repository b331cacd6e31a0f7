"""Who works on a run's hosts: what options say, and one sentence for what cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hostwright.apply.executors.choosing import EXTRAS, executor_for, take_over_left, workers_of
from hostwright.apply.journal.header import RunHeader
from hostwright.apply.journal.reading import Runs
from hostwright.apply.journal.writing import Journal
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from tests.lab.sshd import free_port
from tests.places import PROJECT
from tests.unit.support.clusters import fleet_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOSTWRIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize(
    ("request_", "module"),
    [
        (Request(), None),
        (Request(executor="local"), None),
        # what --resume takes over of a run that was given to a cluster
        (Request(executor="local", scheduler="tls://a:1"), None),
        (Request(executor="dask", scheduler="tls://a:1"), EXTRAS["dask"][0]),
    ],
)
def test_who_works(request_, module):
    assert getattr(workers_of(request_), "__name__", None) == module


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"executor": "dusk", "scheduler": "tls://a:1"}, "--executor: found 'dusk', expected local or dask"),
        (
            {"executor": "dask"},
            "--executor dask: requires the address of the scheduler; pass --scheduler tls://HOST:8786",
        ),
        (
            {"scheduler": "tls://a:1"},
            "--scheduler: requires a Dask cluster as executor; pass --executor dask",
        ),
    ],
)
def test_what_cannot_be_meant(options, sentence):
    with pytest.raises(InputError) as refused:
        workers_of(Request(**options))
    assert str(refused.value) == sentence


def test_the_options_are_recorded_and_taken_up_again(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    change = Request(executor="dask", scheduler="tls://a:1")
    given = fleet.request_of(fleet.targets("all"), change)
    assert given.recorded() == {"hosts": "all", "executor": "dask", "scheduler": "tls://a:1"}
    assert "executor" not in fleet.request_of(fleet.targets("all")).recorded()


def test_this_machine_needs_nothing(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    with executor_for(fleet, fleet.targets("all"), Request(), None) as open_executor:
        assert open_executor is None


def test_proofs_are_run_from_this_machine(tmp_path: Path):
    fleet = fleet_of(tmp_path / "site")
    request = Request(executor="dask", scheduler="tls://a:1", prove="quick")
    with (
        pytest.raises(InputError, match=r"--prove: proofs run only from this machine"),
        executor_for(fleet, fleet.targets("all"), request, None),
    ):
        pass


def test_a_cluster_that_is_not_there_ends_the_run_before_it_is_recorded(tmp_path: Path, state: Path):
    fleet = fleet_of(tmp_path / "site")
    change = Request(executor="dask", scheduler=f"tcp://127.0.0.1:{free_port()}")
    with pytest.raises(InputError, match="no scheduler answers at"):
        fleet.provision(fleet.targets("all"), change)
    assert not (state / "runs").exists()


WITHOUT = f"""
import sys
sys.path.insert(0, {str(PROJECT)!r})
sys.modules["distributed"] = None
from pathlib import Path
from hostwright.apply.executors.choosing import executor_for
from hostwright.common.errors import InputError
from hostwright.common.request import Request
from hostwright.fleet import Fleet
from hostwright.plan.roles.site import Site
fleet = Fleet.load(site=Site(Path(sys.argv[1])))
try:
    with executor_for(fleet, fleet.targets("all"), Request(executor="dask", scheduler="tls://a:1"), None):
        pass
except InputError as error:
    print(error, error.exit_status)
"""


def test_without_the_package_one_sentence_says_what_to_install(tmp_path: Path):
    fleet_of(tmp_path / "site")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path / "site")], capture_output=True, text=True, check=True
    )
    assert done.stdout == (
        "--executor dask: the package distributed is not installed; run `pip install distributed` 2\n"
    )


def test_hostwright_alone_imports_no_dask():
    program = "import sys, hostwright.fleet, hostwright.apply.rollout.applying, hostwright.apply.executors.choosing; "
    program += "print([name for name in sys.modules if name.partition('.')[0] in ('dask', 'distributed')])"
    done = subprocess.run([sys.executable, "-c", program], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ---------------------------------------------------------------- a run that was left behind


def left(fleet: Fleet, state: Path, scheduler: str) -> None:
    header = RunHeader(
        "20270101t000000-abcd", "provision", ("gpu01",), str(fleet.path), {"executor": "dask", "scheduler": scheduler},
        began="2027-01-01T00:00:00+00:00",
    )  # fmt: skip
    Journal.begin(state, header, secrets=[], on_trouble=pytest.fail).close()


def test_workers_of_a_run_that_was_left_behind_are_asked_before_it_is_resumed(tmp_path: Path, state: Path):
    fleet = fleet_of(tmp_path / "site")
    left(fleet, state, f"tcp://127.0.0.1:{free_port()}")
    with pytest.raises(InputError, match="no scheduler answers at"):
        fleet.resume(Request())
    last, options = fleet.resume(Request(executor="local"))
    assert (last, options.hosts, workers_of(options)) == ("20270101t000000-abcd", "gpu01", None)


def test_no_cluster_is_asked_where_no_run_was_left_behind(tmp_path: Path, state: Path):
    fleet = fleet_of(tmp_path / "site")
    header = RunHeader("20270101t000000-abcd", "provision", ("gpu01",), str(fleet.path), {"hosts": "all"})
    Journal.begin(state, header, secrets=[], on_trouble=pytest.fail).close()
    run = Runs(state).find("last")
    take_over_left(run, fleet, Request(executor="dask", scheduler="tcp://127.0.0.1:1"))
